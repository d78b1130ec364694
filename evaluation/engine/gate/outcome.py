"""Outcomes of rules, and how a number is held against a threshold.

Numbers are compared at full precision, except that a difference below ``COMPARISON_TOLERANCE`` counts as
equality: 0.85 - 0.80 is 0.04999999999999993 in binary floating point, and a drop of exactly five points must
pass as written. No rate of fewer than a billion examples differs from a threshold by so little without being
equal to it in meaning.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from evaluation.engine.gate.policy import Confidence
from evaluation.engine.statistics import Interval

Outcome = Literal["passed", "failed", "inconclusive", "skipped"]

COMPARISON_TOLERANCE: Final = 1e-9

MAX_EXAMPLE_IDS: Final = 50
"""Examples that an outcome names; the report page lists the rest by filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one rule, or one part of a rule, came to.

    Attributes:
        name: Name of the rule or part.
        outcome: passed, failed, inconclusive (cannot be said) or skipped (not asked for).
        observed: The number that decides; None when there is none.
        interval: Its 95 % interval; None when not computable.
        threshold: What it is held against.
        num_examples: Examples behind the number.
        explanation: One sentence in plain words.
        example_ids: Examples that decide it, at most ``MAX_EXAMPLE_IDS``.
        parts: The single comparisons of a rule that makes several.
        p_value: Exact McNemar test against the baseline; None where there is none.
    """

    name: str
    outcome: Outcome
    explanation: str
    observed: float | None = None
    interval: Interval | None = None
    threshold: float | None = None
    num_examples: int | None = None
    example_ids: tuple[str, ...] = ()
    parts: tuple["Finding", ...] = ()
    p_value: float | None = None

    def to_json(self, name_key: str = "name") -> dict[str, Any]:
        """Return the finding as it stands in a decision; a rule's name is under ``rule``, a part's under
        ``name``.
        """
        return {
            name_key: self.name,
            "outcome": self.outcome,
            "observed": self.observed,
            "interval": None if self.interval is None else self.interval.to_json(),
            "interval_method": None if self.interval is None else self.interval.method,
            "threshold": self.threshold,
            "num_examples": self.num_examples,
            "explanation": self.explanation,
            "example_ids": list(self.example_ids),
            "p_value": self.p_value,
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Threshold:
    """A bound that an observed number must keep.

    Attributes:
        value: The bound.
        is_minimum: Whether the number must be at least (else at most) the bound.
        is_strict: Whether equality fails.
    """

    value: float
    is_minimum: bool
    is_strict: bool = False

    def is_met_by(self, number: float) -> bool:
        """Say whether a number keeps the bound (see the module's docstring for equality)."""
        margin = number - self.value if self.is_minimum else self.value - number
        return margin > COMPARISON_TOLERANCE if self.is_strict else margin >= -COMPARISON_TOLERANCE


def at_least(value: float) -> Threshold:
    """The number must be at least the value."""
    return Threshold(value, is_minimum=True)


def at_most(value: float) -> Threshold:
    """The number must be at most the value."""
    return Threshold(value, is_minimum=False)


def above(value: float) -> Threshold:
    """The number must be above the value."""
    return Threshold(value, is_minimum=True, is_strict=True)


def hold_against(
    observed: float | None, interval: Interval | None, threshold: Threshold, confidence: Confidence
) -> Outcome:
    """Hold a number against its threshold.

    Returns:
        inconclusive without a finite number; under ``bound`` also without an interval, and when the interval
        straddles the threshold.
    """
    if observed is None or not math.isfinite(observed):
        return "inconclusive"
    if confidence == "point":
        return "passed" if threshold.is_met_by(observed) else "failed"
    if interval is None:
        return "inconclusive"
    ends = {
        threshold.is_met_by(interval.low),
        threshold.is_met_by(interval.high),
        threshold.is_met_by(observed),
    }
    if len(ends) == 2:
        return "inconclusive"
    return "passed" if ends == {True} else "failed"


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Combine outcomes: any failed, else any inconclusive, else passed; nothing at all is inconclusive."""
    decided = [outcome for outcome in outcomes if outcome != "skipped"]
    if "failed" in decided:
        return "failed"
    return "inconclusive" if "inconclusive" in decided or not decided else "passed"


def inconclusive(name: str, explanation: str, **known: Any) -> Finding:
    """Return a finding that cannot be decided, with what is known of it."""
    return Finding(name=name, outcome="inconclusive", explanation=explanation, **known)


def combine(name: str, parts: Sequence[Finding], explanation: str, **known: Any) -> Finding:
    """Combine the parts of a rule; examples of the parts that did not pass are collected."""
    ids = [i for part in parts if part.outcome in ("failed", "inconclusive") for i in part.example_ids]
    return Finding(
        name=name,
        outcome=worst([part.outcome for part in parts]),
        explanation=explanation,
        example_ids=tuple(dict.fromkeys(ids))[:MAX_EXAMPLE_IDS],
        parts=tuple(parts),
        **known,
    )


def as_percent(value: float | None) -> str:
    """Write a fraction as a percentage with one decimal, or say that it is missing."""
    return "missing" if value is None else f"{100 * value:.1f} %"
