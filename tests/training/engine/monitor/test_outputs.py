"""Symptoms in outputs, from plain numbers and from an evaluation's stored JSON."""

from typing import Any

import pytest

from evaluation.engine.metrics import aggregate_sets
from training.engine.handbook.lookup import get_rows
from training.engine.handbook.rows import HandbookRow
from training.engine.monitor.output_reading import read_output_symptoms
from training.engine.monitor.outputs import OUTPUT_RULES, FieldSymptoms, OutputSymptoms, Rate, judge_outputs

GOOD = {
    "never_stops": Rate(value=0.0, num_examples=200),
    "template_tokens": Rate(value=0.0, num_examples=200),
    "repetition": Rate(value=0.0, num_examples=200),
    "preamble": Rate(value=0.0, num_examples=200),
    "drops": {"chat": 0.05, "commonsense": -0.02},
    "parity": Rate(value=0.0, num_examples=50),
    "holdout_score": Rate(value=0.9, num_examples=200),
    "ood_score": Rate(value=0.8, num_examples=150),
    "strict_parse": Rate(value=1.0, num_examples=200),
    "short_valid": Rate(value=1.0, num_examples=150),
    "long_valid": Rate(value=0.98, num_examples=50),
    "fields": {
        "a": FieldSymptoms(accuracy=Rate(value=0.9, num_examples=200)),
        "b": FieldSymptoms(accuracy=Rate(value=0.85, num_examples=200)),
    },
}
PLANTED: dict[str, tuple[dict[str, Any], HandbookRow]] = {
    "never-stops": ({"never_stops": Rate(value=0.02, num_examples=200)}, HandbookRow.NEVER_STOPS),
    "template-tokens-in-output": (
        {"template_tokens": Rate(value=0.05, num_examples=200)}, HandbookRow.TEMPLATE_TOKENS_IN_OUTPUT,
    ),
    "repetition": ({"repetition": Rate(value=0.03, num_examples=200)}, HandbookRow.REPETITION),
    "style-drift": ({"preamble": Rate(value=0.4, num_examples=200)}, HandbookRow.STYLE_DRIFT),
    "forgetting": ({"drops": {"chat": 0.051, "refusal": 0.0}}, HandbookRow.FORGETTING),
    "worse-after-merge": ({"parity": Rate(value=0.2, num_examples=50)}, HandbookRow.WORSE_AFTER_MERGE),
    "ood-drop": ({"ood_score": Rate(value=0.7, num_examples=150)}, HandbookRow.HELD_OUT_RISES),
    "long-input-collapse": (
        {"long_valid": Rate(value=0.7, num_examples=50)}, HandbookRow.LONG_INPUT_COLLAPSE,
    ),
    "field-always-wrong": (
        {"fields": {**GOOD["fields"], "b": FieldSymptoms(  # type: ignore[dict-item]
            accuracy=Rate(value=0.6, num_examples=200), commonest_observed_fraction=0.95,
        )}},
        HandbookRow.FIELD_ALWAYS_WRONG,
    ),
    "off-topic": ({"holdout_score": Rate(value=0.2, num_examples=200)}, HandbookRow.OFF_TOPIC),
}  # fmt: skip


def judge(**changes: Any) -> list[str]:
    return [finding.code for finding in judge_outputs(OutputSymptoms(**{**GOOD, **changes})).findings]


def test_good_numbers_name_nothing() -> None:
    report = judge_outputs(OutputSymptoms(**GOOD))  # type: ignore[arg-type]
    assert (report.findings, report.unchecked) == ((), ())


@pytest.mark.parametrize("name", PLANTED)
def test_each_symptom_names_its_row(name: str) -> None:
    changes, row = PLANTED[name]
    (finding,) = judge_outputs(OutputSymptoms(**{**GOOD, **changes})).findings
    assert (finding.code, finding.row, finding.step) == (f"evaluation/{name}", row, 0)
    assert row in get_rows(finding.code)


def test_every_rule_is_planted_and_unchecked_without_numbers() -> None:
    assert {rule.code for rule in OUTPUT_RULES} == {f"evaluation/{name}" for name in PLANTED}
    assert judge_outputs(OutputSymptoms()).unchecked == tuple(rule.code for rule in OUTPUT_RULES)


def test_single_examples_small_sets_and_noise_decide_nothing() -> None:
    assert judge(never_stops=Rate(value=0.02, num_examples=50)) == []  # One example.
    assert judge(parity=Rate(value=0.06, num_examples=50), noise_fraction=0.1) == []
    assert (
        judge(short_valid=Rate(value=0.9, num_examples=40), long_valid=Rate(value=0.79, num_examples=20))
        == []
    )
    assert (
        judge(preamble=Rate(value=0.3, num_examples=50), baseline_preamble=Rate(value=0.4, num_examples=50))
        == []
    )
    tiny = judge_outputs(OutputSymptoms(never_stops=Rate(value=1.0, num_examples=10)))
    assert "evaluation/never-stops" in tiny.unchecked


def make_row(index: int, role: str = "holdout", **changes: Any) -> dict[str, Any]:
    is_long = index % 4 == 0
    fields = {
        name: {
            "expected": index % 2,
            "observed": observed,
            "observed_missing": False,
            "correct": index % 2 == observed,
        }
        for name, observed in (("kind", index % 2), ("urgency", 0))
    }
    quiet = {
        "never_stopped": False,
        "template_residue": False,
        "repetition": False,
        "preamble": index % 2 == 0,
    }
    row = {
        "role": role, "form": "merged", "example_id": str(index), "dimension": None, "score": 0.75,
        "passed": False, "parse": "unparsed" if is_long else "strict", "schema_valid": not is_long,
        "fields": fields,
        "finish_reason": "stop", "num_prompt_tokens": 500 if is_long else 50, "output": "",
        "behaviour": quiet,
        "details": {"verified": True},
    }  # fmt: skip
    return {**row, **changes}


def test_the_stored_json_of_an_evaluation_is_read() -> None:
    rows = [make_row(index) for index in range(80)] + [
        make_row(index, "ood", score=0.3) for index in range(40)
    ]
    rows += [make_row(index, "regression", dimension="chat", score=0.5, fields={}) for index in range(40)]
    before = [make_row(index, "regression", dimension="chat", score=0.8, fields={}) for index in range(40)]
    metrics = {
        "form": "merged",
        "sets": aggregate_sets(rows, "merged"),
        "canary_parity": {
            "num_compared": 50, "num_diverged": 10, "noise_floor_compared": 10, "noise_floor_diverged": 1,
        },
    }  # fmt: skip
    baseline = {"sets": aggregate_sets(before, "merged")}
    symptoms = read_output_symptoms(metrics, baseline=baseline, rows=rows)
    assert symptoms.preamble == Rate(value=0.5, num_examples=120)
    assert symptoms.drops == {"chat": pytest.approx(0.3)}
    assert (symptoms.parity, symptoms.noise_fraction) == (Rate(value=0.2, num_examples=50), 0.1)
    assert symptoms.long_valid == Rate(value=0.0, num_examples=20)
    assert symptoms.short_valid == Rate(value=1.0, num_examples=60)
    urgency = symptoms.fields["urgency"]
    assert (urgency.accuracy.value, urgency.commonest_observed_fraction) == (0.5, 1.0)
    assert urgency.commonest_expected_fraction == 0.5
    assert {finding.row for finding in judge_outputs(symptoms).findings} == {
        HandbookRow.STYLE_DRIFT, HandbookRow.FORGETTING, HandbookRow.WORSE_AFTER_MERGE,
        HandbookRow.HELD_OUT_RISES, HandbookRow.LONG_INPUT_COLLAPSE, HandbookRow.FIELD_ALWAYS_WRONG,
    }  # fmt: skip


@pytest.mark.parametrize(
    "metrics", [{}, {"sets": None}, {"sets": {"holdout": {"num_examples": "x", "score": True}}}]
)
def test_what_is_missing_or_of_another_form_stays_unknown(metrics: dict[str, Any]) -> None:
    assert read_output_symptoms(metrics, rows=[{"role": "holdout"}]) == OutputSymptoms()
