from typing import Any

import pytest

from evaluation.engine.gate.evidence import Evidence
from evaluation.engine.gate.outcome import Outcome
from evaluation.engine.gate.policy import RegressionDropRule
from evaluation.engine.gate.rules.regression import check_regression_drop
from tests.evaluation.engine.gate.samples import report, row, sample_evidence


def evidence(num_examples: int, num_before: int, num_after: int) -> Evidence:
    """Return one dimension in which the base passes ``num_before`` and the candidate ``num_after``."""

    def rows(form: str, num_passed: int) -> list[dict[str, Any]]:
        return [
            row("regression", i, form, dimension="chat", score=float(i < num_passed), parse=None)
            for i in range(num_examples)
        ]

    return Evidence(
        candidate=report("merged", rows("merged", num_after)),
        baseline=report("base", rows("base", num_before)),
    )


@pytest.mark.parametrize(
    ("num_before", "num_after", "outcome"),
    [
        (80, 80, "passed"),
        (80, 76, "passed"),
        (80, 75, "passed"),  # a drop of exactly five points passes, though 0.8 - 0.75 is not 0.05 in binary
        (80, 74, "failed"),
        (20, 14, "failed"),  # points, not relative: 6 of 100 whatever the level
        (60, 90, "passed"),
    ],
)
def test_five_points(num_before: int, num_after: int, outcome: Outcome) -> None:
    finding = check_regression_drop(RegressionDropRule(), evidence(100, num_before, num_after))
    assert finding.outcome == outcome
    assert finding.observed == pytest.approx((num_before - num_after) / 100)
    assert len(finding.parts) == 1


def test_a_part_gives_paired_interval_examples_and_mcnemar() -> None:
    (part,) = check_regression_drop(RegressionDropRule(), evidence(100, 80, 70)).parts
    assert part.name == "chat"
    assert part.example_ids == tuple(f"regression-{i}" for i in range(70, 80))
    assert part.p_value == pytest.approx(2 / 2**10)  # ten lost, none gained: 2 (1/2)^10
    assert part.interval is not None
    # Ten of 100 differ: half-width near 1.96 sqrt(0.1 * 0.9 / 100) = 0.059.
    assert 0.03 < part.interval.low < 0.1 < part.interval.high < 0.18


def test_the_worst_dimension_decides() -> None:
    def spoil(rows: list[dict[str, Any]]) -> None:
        chosen = [item for item in rows if item["dimension"] == "commonsense"][:10]
        for item in chosen:
            item["score"] = 0.0

    finding = check_regression_drop(RegressionDropRule(), sample_evidence(spoil))
    assert finding.outcome == "failed"
    assert finding.observed == pytest.approx(0.2)  # 10 of 50
    assert [part.outcome for part in finding.parts] == ["passed", "failed"]
    assert "commonsense" in finding.explanation
    assert len(finding.example_ids) == 10


def test_a_dimension_that_only_one_side_has_is_inconclusive() -> None:
    def rename(rows: list[dict[str, Any]]) -> None:
        for item in rows:
            if item["dimension"] == "chat":
                item["dimension"] = "talk"

    finding = check_regression_drop(RegressionDropRule(), sample_evidence(rename))
    assert finding.outcome == "inconclusive"
    assert {part.name for part in finding.parts if part.outcome == "inconclusive"} >= {"chat", "talk"}


def test_no_dimensions_are_inconclusive() -> None:
    assert check_regression_drop(RegressionDropRule(), evidence(0, 0, 0)).outcome == "inconclusive"
