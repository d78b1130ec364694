"""The report of a cleaning step: counts, parameters and a few examples before and after (MISSION C3)."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from training.engine.data.cleaning.step import Outcome
from training.engine.data.examples import Example

MAX_SHOWN_PER_REASON = 3
MAX_SHOWN_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExample:
    """One example before and after a step.

    Attributes:
        example_id: Its id.
        reasons: What was done.
        detail: As in the outcome.
        before: Input and answer before, cut to 400 characters each.
        after: The same after; None when it was dropped.
    """

    example_id: str
    reasons: tuple[str, ...]
    detail: str
    before: Mapping[str, str]
    after: Mapping[str, str] | None

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            "example_id": self.example_id,
            "reasons": list(self.reasons),
            "detail": self.detail,
            "before": dict(self.before),
            "after": None if self.after is None else dict(self.after),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What one step did.

    Attributes:
        name: The step's name.
        version: Of its code.
        parameters: All of them, defaults filled in.
        num_in: Examples that came in.
        num_kept: Examples that went on, changed or not.
        num_changed: Of these, those with other content.
        num_flagged: Of these, those that a person should look at.
        num_dropped: Examples that ended here.
        reasons: How many examples had each reason, most frequent first.
        shown: A few examples of each reason.
        facts: What the step measured.
    """

    name: str
    version: int
    parameters: Mapping[str, Any]
    num_in: int
    num_kept: int
    num_changed: int
    num_flagged: int
    num_dropped: int
    reasons: Mapping[str, int]
    shown: tuple[ShownExample, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form used in report.json."""
        return {
            "name": self.name,
            "version": self.version,
            "parameters": _plain(self.parameters),
            "num_in": self.num_in,
            "num_kept": self.num_kept,
            "num_changed": self.num_changed,
            "num_flagged": self.num_flagged,
            "num_dropped": self.num_dropped,
            "reasons": dict(self.reasons),
            "shown": [item.to_json() for item in self.shown],
            "facts": _plain(self.facts),
        }


class StepTally:
    """Counts outcomes and keeps the first few of each reason.

    Args:
        mask: Makes an example fit to be shown.
    """

    def __init__(self, mask: Callable[[Example], Example]) -> None:
        self._mask = mask
        self._reasons: Counter[str] = Counter()
        # With each example how often its reasons had come before it.
        self._shown: list[tuple[ShownExample, tuple[int, ...]]] = []
        self.num_in = self.num_kept = self.num_changed = self.num_flagged = self.num_dropped = 0

    def add(self, before: Example, outcome: Outcome) -> None:
        """Count one outcome."""
        self.num_in += 1
        after = outcome.example
        if after is None:
            self.num_dropped += 1
        else:
            self.num_kept += 1
            is_changed = after.messages != before.messages or after.fields != before.fields
            self.num_changed += is_changed
            self.num_flagged += bool(outcome.reasons) and not is_changed
        if outcome.reasons:
            times = tuple(self._reasons[reason] for reason in outcome.reasons)
            if min(times) < MAX_SHOWN_PER_REASON:
                self._shown.append((_show(before, outcome, self._mask), times))
            self._reasons.update(outcome.reasons)

    def merge(self, later: "StepTally") -> None:
        """Count what another tally counted of the examples behind these."""
        self.num_in += later.num_in
        self.num_kept += later.num_kept
        self.num_changed += later.num_changed
        self.num_flagged += later.num_flagged
        self.num_dropped += later.num_dropped
        for example, times_there in later._shown:
            times = tuple(
                self._reasons[reason] + more
                for reason, more in zip(example.reasons, times_there, strict=True)
            )
            if min(times) < MAX_SHOWN_PER_REASON:
                self._shown.append((example, times))
        self._reasons.update(later._reasons)

    def report(
        self, *, name: str, version: int, parameters: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> StepReport:
        """Return the report of all that was counted."""
        return StepReport(
            name=name,
            version=version,
            parameters=dict(parameters),
            num_in=self.num_in,
            num_kept=self.num_kept,
            num_changed=self.num_changed,
            num_flagged=self.num_flagged,
            num_dropped=self.num_dropped,
            reasons=dict(self._reasons.most_common()),
            shown=tuple(example for example, _ in self._shown),
            facts=dict(facts),
        )


def _show(before: Example, outcome: Outcome, mask: Callable[[Example], Example]) -> ShownExample:
    return ShownExample(
        example_id=before.example_id,
        reasons=outcome.reasons,
        detail=outcome.detail[:MAX_SHOWN_CHARACTERS],
        before=_texts(mask(before)),
        after=None if outcome.example is None else _texts(mask(outcome.example)),
    )


def _texts(example: Example) -> dict[str, str]:
    return {"input": _cut(example.input_text), "answer": _cut(example.answer or "")}


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 1] + "…"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value
