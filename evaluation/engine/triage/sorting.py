"""Sorts failed answers into kinds: all rules are asked, and where they disagree the answer is ambiguous."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluation.engine.scoring.fields import MISSING
from evaluation.engine.triage.judging import JudgedAnswer
from evaluation.engine.triage.kinds import AMBIGUOUS, FailureKind, Outcome
from evaluation.engine.triage.rules import RULES
from evaluation.engine.triage.signals import Case, LabelRecord, Signal
from evaluation.engine.triage.values import (
    ANSWER,
    LabelSpace,
    expected_values,
    flatten,
    general_path,
    label_text,
    same_content,
)

MIN_CONFIDENCE: Final = 0.5
"""A kind of less confidence is not taken for granted: the answer is ambiguous."""

MIN_LEAD: Final = 0.2
"""So much the first kind must be ahead of the second; otherwise the rules disagree."""

CHANCE_LEVEL: Final = 0.05
"""One-sided: as many right answers as guessing reaches in more than one of twenty times are no skill."""

MAX_SIGNALS: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorting:
    """Where a failed answer was sorted.

    Attributes:
        kind: A ``FailureKind`` or ``ambiguous``; None when the answer did not fail.
        leaning: The kind with the highest confidence; None when no rule said anything.
        confidence: Of the leaning, 0-1.
        signals: Everything that the rules said, the surest first.
    """

    kind: str | None
    leaning: FailureKind | None
    confidence: float
    signals: tuple[Signal, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "kind": self.kind,
            "leaning": None if self.leaning is None else self.leaning.value,
            "confidence": self.confidence,
            "signals": [signal.to_json() for signal in self.signals],
        }


NOT_FAILED: Final = Sorting(kind=None, leaning=None, confidence=0.0, signals=())


def sort_answers(answers: Sequence[JudgedAnswer], space: LabelSpace) -> list[Sorting]:
    """Sort all answers of one prompt; the label fields are looked at over all of them."""
    labels = record_labels(answers, space)
    return [
        sort_failure(Case(judged=judged, space=space, labels=labels))
        if judged.outcome is Outcome.FAILED
        else NOT_FAILED
        for judged in answers
    ]


def sort_failure(case: Case) -> Sorting:
    """Ask every rule about a failed answer and weigh what they say.

    The kind with the surest signal is taken if that is at least ``MIN_CONFIDENCE`` and ``MIN_LEAD`` ahead of
    the surest signal of another kind.
    """
    signals = sorted(
        (signal for rule in RULES for signal in rule(case)), key=lambda signal: -signal.confidence
    )
    best: dict[FailureKind, float] = {}
    for signal in signals:
        best.setdefault(signal.kind, signal.confidence)
    ranked = sorted(best.items(), key=lambda item: -item[1])
    if not ranked:
        return Sorting(kind=AMBIGUOUS, leaning=None, confidence=0.0, signals=())
    (leaning, first), second = ranked[0], ranked[1][1] if len(ranked) > 1 else 0.0
    # Confidences are given in hundredths; the differences of floats are not.
    is_clear = first >= MIN_CONFIDENCE and round(first - second, 6) >= MIN_LEAD
    return Sorting(
        kind=leaning.value if is_clear else AMBIGUOUS,
        leaning=leaning,
        confidence=first,
        signals=tuple(signals[:MAX_SIGNALS]),
    )


def record_labels(answers: Sequence[JudgedAnswer], space: LabelSpace) -> dict[str, LabelRecord]:
    """Say for each field that is a choice among labels how the model does on it over all samples."""
    seen: dict[str, list[tuple[str, bool]]] = {}
    for judged in answers:
        observed = _observed_values(judged)
        for path, expected in expected_values(judged.sample):
            general = general_path(path)
            value = observed.get(path, MISSING)
            if space.is_closed(general) and value is not MISSING:
                seen.setdefault(general, []).append((label_text(value), same_content(value, expected)))
    return {
        path: _record(pairs, num_labels)
        for path, pairs in seen.items()
        if (num_labels := len(space.labels(path))) >= 2
    }


def chance_of_guessing(num_right: int, num_answers: int, num_labels: int) -> float:
    """Return the probability that guessing among equally likely labels gives at least so many right answers
    (upper tail of the binomial distribution, exact).
    """
    chance = 1 / num_labels
    return sum(
        math.comb(num_answers, k) * chance**k * (1 - chance) ** (num_answers - k)
        for k in range(num_right, num_answers + 1)
    )


def _record(pairs: Sequence[tuple[str, bool]], num_labels: int) -> LabelRecord:
    num_right = sum(is_right for _, is_right in pairs)
    commonest = Counter(text for text, _ in pairs).most_common(1)[0][1]
    return LabelRecord(
        num_answers=len(pairs),
        num_right=num_right,
        num_labels=num_labels,
        commonest_fraction=commonest / len(pairs),
        is_chance=chance_of_guessing(num_right, len(pairs), num_labels) > CHANCE_LEVEL,
    )


def _observed_values(judged: JudgedAnswer) -> Mapping[str, Any]:
    if judged.parsed is not None:
        return {} if judged.parsed.level == "unparsed" else dict(flatten(judged.parsed.value))
    wrong = {item.path: item.observed for item in judged.wrong}
    if not judged.sample.is_label:
        return {}
    return {ANSWER: wrong.get(ANSWER, judged.sample.reference)}
