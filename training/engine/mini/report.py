"""The verdict of the small experiment. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from training.engine.preflight.report import CheckStatus

RECORD_NAME: Final = "mini"
MAX_SAMPLE_CHARACTERS: Final = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniCheck:
    """One thing that the experiment says something about."""

    code: str
    status: CheckStatus
    message: str

    def to_json(self) -> dict[str, str]:
        """Return the form that is kept with the run."""
        return {"code": self.code, "status": self.status.value, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniSample:
    """What the trained model answered to one example.

    Attributes:
        prompt: The last message before the answer.
        answer: Of the model, special tokens included, without the end token.
        reference: Of the example.
        has_ended: Whether it stopped by itself within the limit.
    """

    prompt: str
    answer: str
    reference: str
    has_ended: bool

    def to_json(self) -> dict[str, str]:
        """Return the form that is kept with the run; long texts are cut."""
        return {
            "prompt": self.prompt[:MAX_SAMPLE_CHARACTERS],
            "answer": self.answer[:MAX_SAMPLE_CHARACTERS],
            "reference": self.reference[:MAX_SAMPLE_CHARACTERS],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniReport:
    """The verdict.

    Attributes:
        checks: In the order of the handbook: what is trained, whether the loss falls, what comes out.
        samples: Of examples that were not trained on, where there were some.
    """

    checks: tuple[MiniCheck, ...]
    samples: tuple[MiniSample, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the full run may be begun."""
        return all(check.status is not CheckStatus.FAILED for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the document "mini"."""
        return {
            "passed": self.passed,
            "checks": [check.to_json() for check in self.checks],
            "samples": [sample.to_json() for sample in self.samples],
        }


def check(code: str, is_good: bool, good: str, bad: str) -> MiniCheck:
    """Return a check that passed or failed, with the words for it."""
    status = CheckStatus.PASSED if is_good else CheckStatus.FAILED
    return MiniCheck(code=code, status=status, message=good if is_good else bad)


def joined(ids: Sequence[int]) -> str:
    """Return numbers of samples, from 1, for a message."""
    return ", ".join(str(number) for number in ids)
