import pytest

from evaluation.engine.gate.outcome import Outcome
from evaluation.engine.gate.policy import BeatsBaselineRule, MinScoreRule, OodRatioRule
from evaluation.engine.gate.rules.scores import check_beats_baseline, check_min_score, check_ood_ratio
from tests.evaluation.engine.gate.samples import Rows, fail_first, sample_evidence


@pytest.mark.parametrize(
    ("num_failed", "outcome"), [(0, "passed"), (15, "passed"), (16, "failed"), (100, "failed")]
)
def test_ood_ratio(num_failed: int, outcome: Outcome) -> None:
    finding = check_ood_ratio(
        OodRatioRule(), sample_evidence(lambda rows: fail_first(rows, "ood", num_failed, score=0.0))
    )
    assert finding.outcome == outcome
    assert finding.observed == pytest.approx(1 - num_failed / 100)
    assert finding.num_examples == 200
    assert len(finding.example_ids) == min(num_failed, 50)


def test_ood_ratio_compares_with_holdout() -> None:
    # OOD 0.6 against holdout 0.8: 75 % by hand.
    def spoil(rows: Rows) -> None:
        fail_first(rows, "ood", 40, score=0.0)
        fail_first(rows, "holdout", 20, score=0.0)

    evidence = sample_evidence(spoil)
    finding = check_ood_ratio(OodRatioRule(), evidence)
    assert finding.observed == pytest.approx(0.75)
    assert finding.interval is not None
    assert finding.interval.low < 0.75 < finding.interval.high
    assert finding.outcome == "failed"


def test_no_ratio_of_zero() -> None:
    finding = check_ood_ratio(
        OodRatioRule(), sample_evidence(lambda rows: fail_first(rows, "holdout", 100, score=0.0))
    )
    assert finding.outcome == "inconclusive"


@pytest.mark.parametrize(("score", "outcome"), [(0.99, "passed"), (1.0, "failed")])
def test_beats_baseline_is_strict(score: float, outcome: Outcome) -> None:
    evidence = sample_evidence(change_baseline=lambda rows: fail_first(rows, "holdout", 100, score=score))
    finding = check_beats_baseline(BeatsBaselineRule(), evidence)
    assert finding.outcome == outcome
    assert finding.observed == pytest.approx(1 - score)


def test_beats_baseline_names_the_examples_that_got_worse() -> None:
    evidence = sample_evidence(
        lambda rows: fail_first(rows, "holdout", 3, score=0.5),
        lambda rows: fail_first(rows, "holdout", 3, score=1.0),
    )
    finding = check_beats_baseline(BeatsBaselineRule(), evidence)
    assert finding.example_ids == ("holdout-0", "holdout-1", "holdout-2")


@pytest.mark.parametrize(("num_failed", "outcome"), [(20, "passed"), (21, "failed")])
def test_min_score(num_failed: int, outcome: Outcome) -> None:
    evidence = sample_evidence(lambda rows: fail_first(rows, "holdout", num_failed, score=0.0))
    finding = check_min_score(MinScoreRule(), evidence)
    assert finding.outcome == outcome
    assert finding.threshold == 0.8
    assert finding.interval is not None
    assert finding.interval.method == "bootstrap-bca"
