"""From example rows to the ``sets`` of metrics.json. Everything is computed from the rows, so it can be
recomputed.

Rates are fractions (0-1) of all examples of a set, None for an empty one. A field's precision, recall and F1
are macro averages over the values that occur among references and outputs (as scikit-learn's, with 0 for
0/0): values are the classes, and an output without a value is a miss for its reference and a prediction of
nothing.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evaluation.engine.canonical import canonical_json

Row = Mapping[str, Any]
"""A row of examples.jsonl."""

MIN_CONSTANT_EXAMPLES: Final = 10
"""Fewer examples of a dimension may well have the same answer by chance."""

CONSTANT_ANSWER_FRACTION: Final = 0.8
"""One answer above this share is reported as constant (FACTS section 5; the threshold of C7)."""

_BEHAVIOURS: Final = {
    "never_stopped": "never_stops_rate",
    "template_residue": "template_residue_rate",
    "repetition": "repetition_rate",
    "preamble": "preamble_rate",
}


def aggregate_sets(rows: Sequence[Row], form: str) -> dict[str, Any]:
    """Aggregate the rows of one form.

    Args:
        rows: Rows of all roles and forms.
        form: The form that is judged: base, adapter or merged; rows of other forms are left out.

    Returns:
        ``{"holdout", "ood", "regression", "canary"}``.
    """
    by_role: dict[str, list[Row]] = {"holdout": [], "ood": [], "regression": [], "canary": []}
    for row in rows:
        if row["form"] == form:
            by_role[row["role"]].append(row)
    return {
        "holdout": aggregate_task_set(by_role["holdout"]),
        "ood": aggregate_task_set(by_role["ood"]),
        "regression": aggregate_regression(by_role["regression"]),
        "canary": aggregate_canaries(by_role["canary"]),
    }


def aggregate_task_set(rows: Sequence[Row]) -> dict[str, Any]:
    """Aggregate the rows of holdout or OOD."""
    return {
        "num_examples": len(rows),
        "score": mean([row["score"] for row in rows]),
        "exact_match_rate": _rate(bool(row["passed"]) for row in rows),
        **_parse_rates(rows),
        "fields": _field_metrics(rows),
        "behaviour": aggregate_behaviour(rows),
        "verified_fraction": _rate(_is_verified(row) for row in rows),
        "num_refused": sum(is_refused(row) for row in rows),
    }


def aggregate_regression(rows: Sequence[Row]) -> dict[str, Any]:
    """Aggregate the regression rows by dimension; behaviour is that of the generated ones alone."""
    dimensions = sorted({str(row["dimension"]) for row in rows})
    generated = [row for row in rows if row["finish_reason"] != "scored"]
    return {
        "num_examples": len(rows),
        "num_open_generation": len(generated),
        "dimensions": {
            name: _dimension_metrics([row for row in rows if row["dimension"] == name]) for name in dimensions
        },
        "behaviour": aggregate_behaviour(generated),
        "verified_fraction": _rate(_is_verified(row) for row in rows),
    }


def aggregate_canaries(rows: Sequence[Row]) -> dict[str, Any]:
    """Aggregate the canary rows; the score is that of the canaries that have a JSON reference."""
    scored = [row["score"] for row in rows if row["score"] is not None]
    return {
        "num_examples": len(rows),
        "num_refused": sum(is_refused(row) for row in rows),
        "score": mean(scored),
        "num_scored": len(scored),
        **_parse_rates(rows),
        "behaviour": aggregate_behaviour([row for row in rows if not is_refused(row)]),
    }


def aggregate_behaviour(rows: Sequence[Row]) -> dict[str, float | None]:
    """Return the rates of the behaviours over generated outputs."""
    return {
        rate: _rate(bool(row["behaviour"][behaviour]) for row in rows)
        for behaviour, rate in _BEHAVIOURS.items()
    }


def constant_answer_warnings(rows: Sequence[Row], form: str) -> list[dict[str, Any]]:
    """Find dimensions in which nearly every answer is the same although the references differ.

    Returns:
        ``{"dimension", "answer", "fraction", "num_examples", "message"}`` for each; ``answer`` is the
        option's label for choices and the text for generated answers.
    """
    warnings = []
    for dimension in sorted({str(row["dimension"]) for row in rows if row["role"] == "regression"}):
        chosen = [row for row in rows if row["dimension"] == dimension and row["form"] == form]
        answers = Counter(str(row["details"].get("chosen", row["output"].strip())) for row in chosen)
        if len(chosen) < MIN_CONSTANT_EXAMPLES:
            continue
        answer, count = answers.most_common(1)[0]
        fraction = count / len(chosen)
        if fraction > CONSTANT_ANSWER_FRACTION:
            warnings.append(
                {
                    "dimension": dimension,
                    "answer": answer[:200],
                    "fraction": fraction,
                    "num_examples": len(chosen),
                    "message": f"{count} of {len(chosen)} answers in {dimension} are {answer[:80]!r}: "
                    "its score shows a preference, not an ability",
                }
            )
    return warnings


def is_refused(row: Row) -> bool:
    """Whether the prompt did not fit into the context, so that the engine would refuse it."""
    return "refused" in row["details"]


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, exactly rounded; None without values."""
    if not values:
        return None
    return math.fsum(values) / len(values)


def _dimension_metrics(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "num_examples": len(rows),
        "score": mean([row["score"] for row in rows]),
        "open_generation": all(row["finish_reason"] != "scored" for row in rows),
        "verified_fraction": _rate(_is_verified(row) for row in rows),
    }


def _parse_rates(rows: Sequence[Row]) -> dict[str, float | None]:
    return {
        "strict_parse_rate": _rate(row["parse"] == "strict" for row in rows),
        "lenient_parse_rate": _rate(row["parse"] in ("strict", "lenient") for row in rows),
        "schema_valid_rate": _rate(bool(row["schema_valid"]) for row in rows),
    }


def _field_metrics(rows: Sequence[Row]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for row in rows for name in row["fields"]))
    return {
        name: _one_field([row["fields"][name] for row in rows if name in row["fields"]]) for name in names
    }


def _one_field(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    expected = [canonical_json(result["expected"]) for result in results]
    observed = [
        None if result["observed_missing"] else canonical_json(result["observed"]) for result in results
    ]
    hits = Counter(e for e, o in zip(expected, observed, strict=True) if e == o)
    num_expected, num_observed = Counter(expected), Counter(o for o in observed if o is not None)
    precisions, recalls, f1_scores = [], [], []
    for value in sorted(num_expected.keys() | num_observed.keys()):
        precision = hits[value] / num_observed[value] if num_observed[value] else 0.0
        recall = hits[value] / num_expected[value] if num_expected[value] else 0.0
        precisions.append(precision)
        recalls.append(recall)
        f1_scores.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    return {
        "accuracy": _rate(bool(result["correct"]) for result in results),
        "precision_macro": mean(precisions),
        "recall_macro": mean(recalls),
        "f1_macro": mean(f1_scores),
        "num": len(results),
    }


def _is_verified(row: Row) -> bool:
    return bool(row["details"].get("verified"))


def _rate(flags: Iterable[bool]) -> float | None:
    values = list(flags)
    return sum(values) / len(values) if values else None
