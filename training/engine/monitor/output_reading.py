"""From an evaluation's stored JSON to the numbers that the rules on outputs look at.

The evaluation is another application, whose code is not used here: this reads its documents, ``metrics.json``
and the rows of ``examples.jsonl``, and takes what it understands. What is missing or of another form stays
unknown.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from training.engine.monitor.outputs import FieldSymptoms, OutputSymptoms, Rate

TASK_SETS: Final = ("holdout", "ood")
LONG_FRACTION: Final = 0.25
"""The longest inputs are compared with the rest."""

_Json = Mapping[str, Any]


def read_output_symptoms(
    metrics: _Json, *, baseline: _Json | None = None, rows: Iterable[_Json] = ()
) -> OutputSymptoms:
    """Return the numbers of an evaluation.

    Args:
        metrics: ``EvaluationRun.metrics``, which is the report's metrics.json.
        baseline: The same of the baseline's run; None without one.
        rows: Rows of the report (``ExampleResult.details``), for what depends on the length of inputs and on
            the values given; [] leaves that unknown.
    """
    sets, base_sets = _object(metrics.get("sets")), _object((baseline or {}).get("sets"))
    tasks = [_object(sets.get(name)) for name in TASK_SETS]
    base_tasks = [_object(base_sets.get(name)) for name in TASK_SETS]
    holdout = tasks[0]
    judged = [row for row in rows if row.get("role") == "holdout" and row.get("form") == metrics.get("form")]
    short, long = _divide_by_length(judged)
    parity, noise = _read_parity(_object(metrics.get("canary_parity")))
    return OutputSymptoms(
        never_stops=_pool(tasks, "never_stops_rate"),
        template_tokens=_pool(tasks, "template_residue_rate"),
        repetition=_pool(tasks, "repetition_rate"),
        preamble=_pool(tasks, "preamble_rate"),
        baseline_preamble=_pool(base_tasks, "preamble_rate"),
        drops=_read_drops(_object(sets.get("regression")), _object(base_sets.get("regression"))),
        parity=parity,
        noise_fraction=noise,
        holdout_score=_read_rate(holdout, "score"),
        ood_score=_read_rate(tasks[1], "score"),
        strict_parse=_read_rate(holdout, "strict_parse_rate"),
        short_valid=_rate_of_valid(short),
        long_valid=_rate_of_valid(long),
        fields=_read_fields(_object(holdout.get("fields")), judged),
    )


def _object(value: Any) -> _Json:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number else None


def _read_rate(described: _Json, name: str) -> Rate | None:
    value, count = _number(described.get(name)), _number(described.get("num_examples"))
    if value is None or count is None or count < 1:
        return None
    return Rate(value=value, num_examples=int(count))


def _pool(tasks: Sequence[_Json], name: str) -> Rate | None:
    """Return the rate over several sets together; None when one that has examples lacks it."""
    num_concerned, total = 0.0, 0
    for task in tasks:
        count = int(_number(task.get("num_examples")) or 0)
        value = _number(_object(task.get("behaviour")).get(name))
        if count and value is None:
            return None
        num_concerned, total = num_concerned + count * (value or 0.0), total + count
    return Rate(value=num_concerned / total, num_examples=total) if total else None


def _read_drops(candidate: _Json, baseline: _Json) -> dict[str, float]:
    before, after = _object(baseline.get("dimensions")), _object(candidate.get("dimensions"))
    drops = {}
    for name in sorted(before.keys() & after.keys()):
        scores = [_number(_object(dimensions[name]).get("score")) for dimensions in (before, after)]
        if scores[0] is not None and scores[1] is not None:
            drops[name] = scores[0] - scores[1]
    return drops


def _read_parity(parity: _Json) -> tuple[Rate | None, float]:
    count, diverged = _number(parity.get("num_compared")), _number(parity.get("num_diverged"))
    if not count or diverged is None:
        return None, 0.0
    repeats, noise = _number(parity.get("noise_floor_compared")), _number(parity.get("noise_floor_diverged"))
    noise_fraction = noise / repeats if repeats and noise is not None else 0.0
    return Rate(value=diverged / count, num_examples=int(count)), noise_fraction


def _divide_by_length(rows: Sequence[_Json]) -> tuple[list[_Json], list[_Json]]:
    """Return the rows with shorter inputs and the longest quarter; rows without a parse level are left
    out.
    """
    usable = [
        row
        for row in rows
        if _number(row.get("num_prompt_tokens")) is not None and isinstance(row.get("parse"), str)
    ]
    ordered = sorted(usable, key=lambda row: float(row["num_prompt_tokens"]))
    split = len(ordered) - int(LONG_FRACTION * len(ordered))
    return ordered[:split], ordered[split:]


def _rate_of_valid(rows: Sequence[_Json]) -> Rate | None:
    if not rows:
        return None
    return Rate(value=sum(row["parse"] == "strict" for row in rows) / len(rows), num_examples=len(rows))


def _read_fields(fields: _Json, rows: Sequence[_Json]) -> dict[str, FieldSymptoms]:
    read = {}
    for name, described in fields.items():
        accuracy, count = _number(_object(described).get("accuracy")), _number(_object(described).get("num"))
        if accuracy is None or not count:
            continue
        results = [_object(_object(row.get("fields")).get(name)) for row in rows]
        read[name] = FieldSymptoms(
            accuracy=Rate(value=accuracy, num_examples=int(count)),
            commonest_observed_fraction=_commonest(results, "observed"),
            commonest_expected_fraction=_commonest(results, "expected"),
        )
    return read


def _commonest(results: Sequence[_Json], key: str) -> float | None:
    values = [
        json.dumps(result[key], sort_keys=True)
        for result in results
        if key in result and not (key == "observed" and result.get("observed_missing"))
    ]
    return Counter(values).most_common(1)[0][1] / len(values) if values else None
