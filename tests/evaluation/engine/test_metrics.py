from typing import Any

import pytest

from evaluation.engine.metrics import aggregate_sets, constant_answer_warnings, mean

QUIET = {"never_stopped": False, "template_residue": False, "repetition": False, "preamble": False}


def row(role: str, example_id: str, **changes: Any) -> dict[str, Any]:
    base = {
        "example_id": example_id,
        "role": role,
        "form": "merged",
        "dimension": None,
        "output": "",
        "finish_reason": "stop",
        "score": None,
        "passed": None,
        "parse": None,
        "schema_valid": None,
        "fields": {},
        "behaviour": QUIET,
        "details": {"verified": True},
    }
    return {**base, **changes}


def field(expected: Any, observed: Any, missing: bool = False) -> dict[str, Any]:
    return {
        "expected": expected,
        "observed": observed,
        "observed_missing": missing,
        "correct": not missing and expected == observed,
    }


def task(example_id: str, result: dict[str, Any], parse: str = "strict", **changes: Any) -> dict[str, Any]:
    score = float(result["correct"])
    values = {"score": score, "passed": score == 1, "parse": parse, "schema_valid": parse == "strict"}
    return row("holdout", example_id, fields={"type": result}, **{**values, **changes})


def test_task_set_by_hand() -> None:
    # References a a a b; outputs a a b -. By hand: a: precision 2/2, recall 2/3; b: 0/1 and 0/1.
    rows = [
        task("1", field("a", "a")),
        task("2", field("a", "a"), behaviour={**QUIET, "never_stopped": True}),
        task("3", field("a", "b")),
        task("4", field("b", None, missing=True), parse="lenient", details={"verified": False}),
    ]
    holdout = aggregate_sets(rows, "merged")["holdout"]
    assert holdout["num_examples"] == 4
    assert holdout["score"] == 0.5
    assert holdout["exact_match_rate"] == 0.5
    assert holdout["strict_parse_rate"] == 0.75
    assert holdout["lenient_parse_rate"] == 1.0
    assert holdout["schema_valid_rate"] == 0.75
    assert holdout["verified_fraction"] == 0.75
    assert holdout["behaviour"]["never_stops_rate"] == 0.25
    assert holdout["fields"]["type"] == {
        "accuracy": 0.5,
        "precision_macro": pytest.approx((1 + 0) / 2),
        "recall_macro": pytest.approx((2 / 3 + 0) / 2),
        "f1_macro": pytest.approx((0.8 + 0) / 2),  # F1 of a: 2 * 1 * (2/3) / (5/3) = 0.8
        "num": 4,
    }


def test_regression_by_dimension_with_behaviour_of_generated_ones_alone() -> None:
    rows = [
        row("regression", "1", dimension="chat", score=1.0, behaviour={**QUIET, "never_stopped": True}),
        row("regression", "2", dimension="chat", score=0.0),
        row(
            "regression", "3", dimension="choice", score=1.0, finish_reason="scored", details={"chosen": "A"}
        ),
    ]
    regression = aggregate_sets(rows, "merged")["regression"]
    assert regression["dimensions"]["chat"] == {
        "num_examples": 2,
        "score": 0.5,
        "open_generation": True,
        "verified_fraction": 1.0,
    }
    assert regression["dimensions"]["choice"]["open_generation"] is False
    assert regression["num_open_generation"] == 2
    assert regression["behaviour"]["never_stops_rate"] == 0.5
    assert regression["verified_fraction"] == pytest.approx(2 / 3)


def test_rows_of_other_forms_are_left_out() -> None:
    rows = [row("canary", "1", parse="strict", schema_valid=True), row("canary", "1", form="adapter")]
    canary = aggregate_sets(rows, "merged")["canary"]
    assert (canary["num_examples"], canary["strict_parse_rate"], canary["score"]) == (1, 1.0, None)


def test_empty_sets_have_no_rates() -> None:
    sets = aggregate_sets([], "merged")
    assert sets["holdout"]["score"] is None
    assert sets["holdout"]["strict_parse_rate"] is None
    assert sets["regression"]["dimensions"] == {}
    assert sets["regression"]["behaviour"]["never_stops_rate"] is None


def test_a_constant_answer_is_reported() -> None:
    rows = [
        row("regression", str(i), dimension="commonsense", details={"chosen": "A" if i < 9 else "B"})
        for i in range(10)
    ]
    (warning,) = constant_answer_warnings(rows, "merged")
    assert (warning["dimension"], warning["answer"], warning["fraction"]) == ("commonsense", "A", 0.9)


def test_few_or_varied_answers_are_no_warning() -> None:
    few = [row("regression", str(i), dimension="d", details={"chosen": "A"}) for i in range(9)]
    varied = [row("regression", str(i), dimension="e", details={"chosen": "AB"[i % 2]}) for i in range(20)]
    assert constant_answer_warnings(few + varied, "merged") == []


def test_mean_is_exactly_rounded() -> None:
    assert mean([0.1] * 10) == 0.1
    assert mean([]) is None
