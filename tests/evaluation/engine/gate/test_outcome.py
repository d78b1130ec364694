import pytest

from evaluation.engine.gate.outcome import (
    Outcome,
    Threshold,
    above,
    at_least,
    at_most,
    hold_against,
    worst,
)
from evaluation.engine.statistics import Interval


@pytest.mark.parametrize(
    ("number", "threshold", "met"),
    [
        (0.85 - 0.80, at_most(0.05), True),  # 0.04999999999999993
        (0.95 - 0.90, at_most(0.05), True),  # 0.04999999999999993
        (0.30 - 0.25, at_most(0.05), True),  # 0.04999999999999999
        (1.0 - 0.95, at_most(0.05), True),  # 0.050000000000000044: a drop of exactly five points
        (0.0501, at_most(0.05), False),
        (0.85, at_least(0.85), True),
        (0.8499, at_least(0.85), False),
        (0.0, above(0.0), False),
        (1e-12, above(0.0), False),
        (1e-6, above(0.0), True),
    ],
)
def test_thresholds_at_the_boundary(number: float, threshold: Threshold, met: bool) -> None:
    assert threshold.is_met_by(number) is met


INSIDE, STRADDLES, OUTSIDE = Interval(0.9, 1, "t"), Interval(0.8, 0.95, "t"), Interval(0.7, 0.8, "t")


@pytest.mark.parametrize(
    ("observed", "interval", "confidence", "outcome"),
    [
        (0.9, OUTSIDE, "point", "passed"),
        (0.9, None, "point", "passed"),
        (0.8, None, "point", "failed"),
        (None, INSIDE, "point", "inconclusive"),
        (float("nan"), INSIDE, "point", "inconclusive"),
        (0.95, INSIDE, "bound", "passed"),
        (0.9, STRADDLES, "bound", "inconclusive"),
        (0.82, STRADDLES, "bound", "inconclusive"),
        (0.75, OUTSIDE, "bound", "failed"),
        (0.95, None, "bound", "inconclusive"),
    ],
)
def test_hold_against(
    observed: float | None, interval: Interval | None, confidence: str, outcome: Outcome
) -> None:
    assert hold_against(observed, interval, at_least(0.85), confidence) == outcome  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["passed", "failed", "inconclusive"], "failed"),
        (["passed", "inconclusive", "skipped"], "inconclusive"),
        (["passed", "skipped"], "passed"),
        (["skipped"], "inconclusive"),
        ([], "inconclusive"),
    ],
)
def test_worst(outcomes: list[Outcome], expected: Outcome) -> None:
    assert worst(outcomes) == expected
