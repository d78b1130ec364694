from typing import Any

import pytest

from evaluation.engine.gate.outcome import Outcome
from evaluation.engine.gate.policy import BehaviourRule, JsonParseRateRule
from evaluation.engine.gate.rules.outputs import check_behaviour, check_json_parse_rate
from tests.evaluation.engine.gate.samples import QUIET, fail_first, sample_evidence


@pytest.mark.parametrize("role", ["holdout", "ood"])
@pytest.mark.parametrize(("num_lenient", "outcome"), [(0, "passed"), (2, "passed"), (3, "failed")])
def test_strict_parse_rate(role: str, num_lenient: int, outcome: Outcome) -> None:
    evidence = sample_evidence(lambda rows: fail_first(rows, role, num_lenient, parse="lenient"))
    finding = check_json_parse_rate(JsonParseRateRule(), evidence)
    assert finding.outcome == outcome
    assert finding.observed == pytest.approx(1 - num_lenient / 100)
    assert len(finding.parts) == 8
    (part,) = (part for part in finding.parts if part.name == f"{role} strict JSON")
    assert part.interval is not None
    assert part.interval.method == "wilson"
    assert part.example_ids == tuple(f"{role}-{i}" for i in range(num_lenient))


@pytest.mark.parametrize(("num_invalid", "outcome"), [(5, "passed"), (6, "failed")])
def test_schema_valid_rate(num_invalid: int, outcome: Outcome) -> None:
    evidence = sample_evidence(lambda rows: fail_first(rows, "ood", num_invalid, schema_valid=False))
    assert check_json_parse_rate(JsonParseRateRule(), evidence).outcome == outcome


def test_the_rates_must_not_be_below_the_baselines() -> None:
    def perfect(rows: list[dict[str, Any]]) -> None:
        fail_first(rows, "holdout", 100, parse="strict", schema_valid=True)

    evidence = sample_evidence(lambda rows: fail_first(rows, "holdout", 1, parse="lenient"), perfect)
    finding = check_json_parse_rate(JsonParseRateRule(), evidence)
    assert finding.outcome == "failed"
    failed = [part.name for part in finding.parts if part.outcome == "failed"]
    assert failed == ["holdout strict JSON against the baseline"]


@pytest.mark.parametrize("behaviour", ["never_stopped", "template_residue"])
@pytest.mark.parametrize(("num_bad", "outcome"), [(1, "passed"), (2, "failed")])
def test_behaviour_on_task_sets(behaviour: str, num_bad: int, outcome: Outcome) -> None:
    bad = {**QUIET, behaviour: True}
    evidence = sample_evidence(lambda rows: fail_first(rows, "ood", num_bad, behaviour=bad))
    assert check_behaviour(BehaviourRule(), evidence).outcome == outcome


@pytest.mark.parametrize(("num_more", "outcome"), [(2, "passed"), (3, "failed")])
def test_open_regression_prompts_are_held_against_the_baseline(num_more: int, outcome: Outcome) -> None:
    # 50 open prompts: two more are 4 points, three are 6. Choices (every other row) have no behaviour.
    bad = {**QUIET, "never_stopped": True}

    def spoil(num: int) -> Any:
        def change(rows: list[dict[str, Any]]) -> None:
            generated = [r for r in rows if r["role"] == "regression" and r["finish_reason"] != "scored"]
            for item in generated[:num]:
                item["behaviour"] = bad

        return change

    evidence = sample_evidence(spoil(30 + num_more), spoil(30))
    finding = check_behaviour(BehaviourRule(), evidence)
    assert finding.outcome == outcome
    (part,) = (part for part in finding.parts if part.name.startswith("open regression never stops"))
    assert part.observed == pytest.approx(num_more / 50)
    assert part.num_examples == 50


def test_without_open_prompts_that_part_is_skipped() -> None:
    def only_choices(rows: list[dict[str, Any]]) -> None:
        fail_first(rows, "regression", 100, finish_reason="scored")

    finding = check_behaviour(BehaviourRule(), sample_evidence(only_choices, only_choices))
    assert finding.outcome == "passed"
    assert [part.outcome for part in finding.parts][-2:] == ["skipped", "skipped"]
