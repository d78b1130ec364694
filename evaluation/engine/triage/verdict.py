"""The verdict of a triage: what helps this task, from the kinds of its failures (MISSION A1; guide, 1).

The guide: failures that gather in "unstable format" and "wrong style" gain much from fine-tuning; those that
gather in "does not know the fact" and "worked it out wrongly" gain nothing. Kinds that a person confirmed
count before those that the rules gave. The thresholds are this module's own, since the guide gives none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from evaluation.engine.statistics import wilson_interval
from evaluation.engine.triage.kinds import AMBIGUOUS, CORRECT, TREATMENT_OF, FailureKind, Outcome, Treatment
from evaluation.engine.triage.samples import FEW_SAMPLES

ENOUGH_FAILED_FRACTION: Final = 0.1
"""At most so many failures (2 of 20): the prompt does the task. The guide has prompts reach 70-80 % of a
format, and that is not enough for batches, so a fifth of failures is no success.
"""

MAIN_FRACTION: Final = 0.5
"""Failures "gather" in a treatment that at least half of them call for."""

SIDE_FRACTION: Final = 0.2
"""A treatment is part of a verdict from a fifth of the failures on, and from ``MIN_SIDE`` failures on."""

MIN_SIDE: Final = 2

MAX_UNCLEAR_FRACTION: Final = 1 / 3
"""When more of the failed and unjudged samples than this are ambiguous or unjudged, and nobody has confirmed
them, they could turn the verdict: it is undecided.
"""


class Advice(StrEnum):
    """What a triage says in one word."""

    FINE_TUNE = "fine-tune"
    RETRIEVAL = "retrieval"
    CODE_OR_RULES = "code-or-rules"
    OTHER_BASE = "other-base"
    MIXED = "mixed"
    PROMPT_IS_ENOUGH = "prompt-is-enough"
    UNDECIDED = "undecided"


REASONS: Final[Mapping[Treatment, str]] = {
    Treatment.FINE_TUNE: "The model knows the content and gives it in another form or tone; examples teach "
    "that, and the form then holds in nearly every output.",
    Treatment.RETRIEVAL: "The right answers are facts that the model was not told. Fine-tuning teaches to "
    "answer with confidence, not to know; give the facts with the prompt, from a search.",
    Treatment.CODE_OR_RULES: "The right answers are worked out from the input. Fine-tuning teaches what "
    "a calculation looks like, not to calculate; let the model extract the values and code work them out.",
    Treatment.OTHER_BASE: "The model does not do the task at all, or no better than by guessing. Fine-tuning "
    "does not add what a base lacks; try another or a larger base first.",
}
"""Guide, sections 1.1-1.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedSample:
    """One sample as the verdict sees it.

    Attributes:
        sample_id: For the reasons.
        outcome: By the rules.
        kind: By the rules: a ``FailureKind``, ``ambiguous``, or None when it did not fail.
        confirmed: A person's word: a ``FailureKind`` or ``correct``; None when nobody has said anything.
    """

    sample_id: str
    outcome: Outcome
    kind: str | None
    confirmed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many failures call for one treatment.

    Attributes:
        treatment: What helps against them.
        num_failures: How many.
        fraction: Of all failures that are sorted, 0-1.
        kinds: Kind to number.
        sample_ids: At most ten of them.
        reason: Why this helps.
        is_part: Whether it is part of the verdict, and not too rare for that.
    """

    treatment: Treatment
    num_failures: int
    fraction: float
    kinds: Mapping[str, int]
    sample_ids: tuple[str, ...]
    reason: str
    is_part: bool

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "treatment": self.treatment.value,
            "num_failures": self.num_failures,
            "fraction": round(self.fraction, 4),
            "kinds": dict(self.kinds),
            "sample_ids": list(self.sample_ids),
            "reason": self.reason,
            "is_part": self.is_part,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageVerdict:
    """What a triage says.

    Attributes:
        advice: In one word.
        is_preliminary: Whether a sample that failed or could not be judged is not confirmed by a person yet.
        num_samples: All samples.
        num_failed: Failures, by people where they spoke, else by the rules.
        num_unclear: Failures without a kind (ambiguous) and unjudged samples, both unconfirmed.
        num_unconfirmed: Samples that failed or could not be judged, and that nobody has confirmed.
        failed_fraction: Of all samples, 0-1.
        failed_interval: Its 95 % interval (Wilson); twenty samples say little.
        shares: By treatment, the largest first; empty without failures.
        summary: The verdict in sentences.
    """

    advice: Advice
    is_preliminary: bool
    num_samples: int
    num_failed: int
    num_unclear: int
    num_unconfirmed: int
    failed_fraction: float
    failed_interval: tuple[float, float]
    shares: tuple[Share, ...]
    summary: str

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "advice": self.advice.value,
            "is_preliminary": self.is_preliminary,
            "num_samples": self.num_samples,
            "num_failed": self.num_failed,
            "num_unclear": self.num_unclear,
            "num_unconfirmed": self.num_unconfirmed,
            "failed_fraction": round(self.failed_fraction, 4),
            "failed_interval": [round(bound, 4) for bound in self.failed_interval],
            "shares": [share.to_json() for share in self.shares],
            "summary": self.summary,
        }


def reach_verdict(samples: Sequence[SortedSample]) -> TriageVerdict:
    """Say what helps a task.

    In this order: fewer than ``FEW_SAMPLES`` samples are undecided; so are failures of which too many are
    unclear (``MAX_UNCLEAR_FRACTION``), unless there are few altogether; few failures
    (``ENOUGH_FAILED_FRACTION``) need no more than the prompt; a treatment that at least half of the sorted
    failures call for is the verdict; several that are each part of it are mixed; else it is undecided.

    Raises:
        ValueError: No samples.
    """
    if not samples:
        raise ValueError("a verdict needs samples")
    finals = [(sample, _final_kind(sample)) for sample in samples]
    failed = [(sample, kind) for sample, kind in finals if kind is not None and kind != Outcome.UNJUDGED]
    unclear = [sample for sample, kind in finals if kind in (AMBIGUOUS, Outcome.UNJUDGED)]
    sorted_failures = [(s, FailureKind(kind)) for s, kind in failed if kind and kind != AMBIGUOUS]
    open_samples = [s for s in samples if s.outcome is not Outcome.PASSED and s.confirmed is None]
    shares = _share_out(sorted_failures)
    num_unjudged = sum(kind == Outcome.UNJUDGED for _, kind in finals)
    advice, why = _advise(len(samples), len(failed), num_unjudged, len(unclear), shares)
    interval = wilson_interval(len(failed), len(samples))
    if interval is None:
        raise ValueError("a verdict needs samples")
    return TriageVerdict(
        advice=advice,
        is_preliminary=bool(open_samples),
        num_samples=len(samples),
        num_failed=len(failed),
        num_unclear=len(unclear),
        num_unconfirmed=len(open_samples),
        failed_fraction=len(failed) / len(samples),
        failed_interval=(interval.low, interval.high),
        shares=shares,
        summary=_summarise(why, shares, len(samples), len(failed), len(open_samples)),
    )


def _final_kind(sample: SortedSample) -> str | None:
    """A person's word before the rules'; None for a right answer."""
    if sample.confirmed is not None:
        return None if sample.confirmed == CORRECT else sample.confirmed
    if sample.outcome is Outcome.UNJUDGED:
        return Outcome.UNJUDGED
    return sample.kind if sample.outcome is Outcome.FAILED else None


def _share_out(failures: Sequence[tuple[SortedSample, FailureKind]]) -> tuple[Share, ...]:
    by_treatment: dict[Treatment, list[tuple[SortedSample, FailureKind]]] = {}
    for sample, kind in failures:
        by_treatment.setdefault(TREATMENT_OF[kind], []).append((sample, kind))
    shares = [
        Share(
            treatment=treatment,
            num_failures=len(members),
            fraction=len(members) / len(failures),
            kinds=dict(Counter(kind.value for _, kind in members)),
            sample_ids=tuple(sample.sample_id for sample, _ in members[:10]),
            reason=REASONS[treatment],
            is_part=len(members) >= MIN_SIDE and len(members) >= SIDE_FRACTION * len(failures),
        )
        for treatment, members in by_treatment.items()
    ]
    order = list(Treatment)
    return tuple(sorted(shares, key=lambda share: (-share.num_failures, order.index(share.treatment))))


def _advise(
    num_samples: int, num_failed: int, num_unjudged: int, num_unclear: int, shares: Sequence[Share]
) -> tuple[Advice, str]:
    if num_samples < FEW_SAMPLES:
        return (
            Advice.UNDECIDED,
            f"{num_samples} samples are too few; write at least {FEW_SAMPLES}, better 20.",
        )
    enough = ENOUGH_FAILED_FRACTION * num_samples
    if num_failed + num_unjudged > enough and num_unclear > MAX_UNCLEAR_FRACTION * (
        num_failed + num_unjudged
    ):
        return (
            Advice.UNDECIDED,
            f"{num_unclear} samples are ambiguous or cannot be judged by rules; a person has to say what "
            "they lack.",
        )
    if num_failed <= enough:
        return Advice.PROMPT_IS_ENOUGH, "The best prompt does the task; nothing else is needed."
    parts = [share for share in shares if share.is_part]
    if len(parts) > 1 and parts[1].fraction >= MAIN_FRACTION:
        return Advice.MIXED, "The failures call for two treatments in equal parts."
    if shares and shares[0].fraction >= MAIN_FRACTION:
        return Advice(
            shares[0].treatment.value
        ), f"The failures gather in what calls for {shares[0].treatment}."
    if len(parts) > 1:
        return Advice.MIXED, "The failures call for several treatments, and none of them for half."
    return Advice.UNDECIDED, "The failures gather nowhere; look at more samples."


def _summarise(
    why: str, shares: Sequence[Share], num_samples: int, num_failed: int, num_unconfirmed: int
) -> str:
    parts = [f"{num_failed} of {num_samples} samples failed. {why}"]
    if len(shares) > 1 or (shares and not shares[0].is_part):
        listed = ", ".join(
            f"{share.treatment} {share.num_failures} ({share.fraction:.0%})" for share in shares
        )
        parts.append(f"By treatment: {listed}.")
    if num_unconfirmed:
        noun = "sample" if num_unconfirmed == 1 else "samples"
        parts.append(f"Preliminary: {num_unconfirmed} {noun} not confirmed by a person.")
    return " ".join(parts)
