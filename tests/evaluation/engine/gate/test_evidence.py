import pytest

from evaluation.engine.gate.evidence import Evidence, Report, checked_mean, paired_differences, row_score
from tests.evaluation.engine.gate.samples import sample_evidence


@pytest.mark.parametrize("value", [None, True, "1", float("nan"), float("inf"), [], {}])
def test_only_finite_numbers_are_numbers(value: object) -> None:
    assert Report(metrics={"a": {"b": value}}).number("a", "b") is None


def test_a_count_is_whole_and_not_negative() -> None:
    metrics = {"a": 3.0, "b": 1.5, "c": -1}
    assert [Report(metrics=metrics).count(key) for key in "abc"] == [3, None, None]


def test_a_missing_path_is_none() -> None:
    assert Report().number("sets", "holdout") is None
    assert Report(metrics={"sets": 1}).number("sets", "holdout") is None


ROWS = [{"example_id": "a", "score": 1.0}, {"example_id": "b", "score": 0.0}]


def test_a_stated_mean_must_be_that_of_its_rows() -> None:
    assert checked_mean(0.5, 2, ROWS, row_score) is not None
    assert checked_mean(0.51, 2, ROWS, row_score) is None
    assert checked_mean(0.5, 3, ROWS, row_score) is None
    assert checked_mean(None, 2, ROWS, row_score) is None
    assert checked_mean(0.5, 2, [*ROWS, ROWS[0]], row_score) is None  # a doubled row
    assert checked_mean(0.5, 2, [ROWS[0], {"example_id": "b", "score": None}], row_score) is None
    assert checked_mean(0.0, 0, [], row_score) is None


def test_pairs_need_the_same_examples() -> None:
    first = checked_mean(0.5, 2, ROWS, row_score)
    other = checked_mean(1.0, 1, ROWS[:1], row_score)
    assert first is not None
    assert other is not None
    assert paired_differences(first, first) == {"a": 0.0, "b": 0.0}
    assert paired_differences(first, other) is None


def test_candidate_and_baseline_must_be_comparable() -> None:
    sound = sample_evidence()
    assert sound.comparison_fault is None
    assert Evidence(candidate=sound.candidate).comparison_fault == "there is no baseline run"
    assert Evidence(baseline=sound.baseline).comparison_fault == "there is no candidate run"
    other = Report(metrics={**(sound.candidate.metrics or {}), "chat_template_sha256": "other"})
    assert "chat template" in str(Evidence(candidate=other, baseline=sound.baseline).comparison_fault)
    assert "base model" in str(Evidence(candidate=sound.candidate, baseline=sound.candidate).comparison_fault)
