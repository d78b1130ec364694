"""The score tables of a report: the subject's figures beside the baseline's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluation.admin.report.rule_rows import NO_VALUE, format_number

_TASK_ROLES: Final = (("holdout", "Holdout"), ("ood", "OOD"))
_TASK_METRICS: Final = (
    ("score", "Score"),
    ("exact_match_rate", "Exact match"),
    ("strict_parse_rate", "Strict JSON"),
    ("lenient_parse_rate", "Lenient JSON"),
    ("schema_valid_rate", "Schema valid"),
)
_BEHAVIOURS: Final = (
    ("never_stops_rate", "Never stops"),
    ("template_residue_rate", "Template residue"),
    ("repetition_rate", "Repetition"),
    ("preamble_rate", "Preamble"),
)
_BEHAVIOUR_ROLES: Final = (*_TASK_ROLES, ("regression", "Regression (open)"), ("canary", "Canaries"))
_VISIBLE_CHANGE: Final = 0.0005
"""Smaller differences vanish at three decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCell:
    """One figure: the subject's, the baseline's and the change; `tone` is "better", "worse", "faint" or
    "".
    """

    value: str
    baseline: str
    change: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One line: a metric, a dimension or a field. `num_examples` is empty where the columns differ in it."""

    label: str
    num_examples: str
    cells: tuple[ScoreCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTable:
    """One table. Each column has three places: value, baseline, change."""

    title: str
    row_heading: str
    columns: tuple[str, ...]
    rows: tuple[ScoreRow, ...]
    has_num_examples: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A labelled figure; `tone` is "better", "worse" or ""."""

    label: str
    value: str
    tone: str = ""


def build_score_tables(
    metrics: Mapping[str, Any] | None, baseline: Mapping[str, Any] | None
) -> tuple[ScoreTable, ...]:
    """All tables of a run; none before it has metrics.

    Args:
        metrics: Content of the run's metrics.json.
        baseline: The same of its baseline; None for a baseline run itself.
    """
    if metrics is None:
        return ()
    sets, base_sets = metrics.get("sets", {}), (baseline or {}).get("sets", {})
    tables = (
        _task_table(sets, base_sets),
        _dimension_table(sets, base_sets),
        _field_table(sets, base_sets),
        _behaviour_table(sets, base_sets),
    )
    return tuple(table for table in tables if table.rows)


def build_parity_facts(metrics: Mapping[str, Any] | None) -> tuple[Fact, ...]:
    """Agreement of merged model and adapter on the canaries; empty when it was not measured."""
    parity = (metrics or {}).get("canary_parity")
    if not parity:
        return ()
    num_diverged = parity.get("num_diverged")
    num_differ = parity.get("num_differ_from_base")
    facts = [
        Fact(label="Canaries compared", value=_count(parity.get("num_compared"))),
        Fact(label="Agree", value=_count(parity.get("num_agree"))),
        Fact(label="Near ties", value=_count(parity.get("num_near_tie"))),
        Fact(label="Diverged", value=_count(num_diverged), tone="worse" if num_diverged else ""),
        Fact(label="Refused by both", value=_count(parity.get("num_refused"))),
        Fact(label="Noise floor: diverged", value=_count(parity.get("noise_floor_diverged"))),
        Fact(label="Differ from base", value=_count(num_differ), tone="worse" if num_differ == 0 else ""),
    ]
    return tuple(fact for fact in facts if fact.value != NO_VALUE)


def _task_table(sets: Mapping[str, Any], base_sets: Mapping[str, Any]) -> ScoreTable:
    rows = [
        ScoreRow(
            label=label,
            num_examples="",
            cells=tuple(_cell(sets.get(role), base_sets.get(role), key) for role, _ in _TASK_ROLES),
        )
        for key, label in _TASK_METRICS
    ]
    columns = tuple(
        f"{label} ({_count(_get(sets.get(role), 'num_examples'))})" for role, label in _TASK_ROLES
    )
    return ScoreTable(title="Task", row_heading="Metric", columns=columns, rows=_with_values(rows))


def _dimension_table(sets: Mapping[str, Any], base_sets: Mapping[str, Any]) -> ScoreTable:
    dimensions = _get(sets.get("regression"), "dimensions") or {}
    base_dimensions = _get(base_sets.get("regression"), "dimensions") or {}
    rows = [
        ScoreRow(
            label=name,
            num_examples=_count(_get(values, "num_examples")),
            cells=(_cell(values, base_dimensions.get(name), "score"),),
        )
        for name, values in sorted(dimensions.items())
    ]
    return ScoreTable(
        title="Regression",
        row_heading="Dimension",
        columns=("Score",),
        rows=tuple(rows),
        has_num_examples=True,
    )


def _field_table(sets: Mapping[str, Any], base_sets: Mapping[str, Any]) -> ScoreTable:
    names: dict[str, None] = {}
    for role, _ in _TASK_ROLES:
        names.update(dict.fromkeys(_get(sets.get(role), "fields") or {}))
    figures = [
        (role, key, f"{label} {name}")
        for role, label in _TASK_ROLES
        for key, name in (("accuracy", "accuracy"), ("f1_macro", "F1"))
    ]
    rows = [
        ScoreRow(
            label=name,
            num_examples="",
            cells=tuple(
                _cell(_field_of(sets, role, name), _field_of(base_sets, role, name), key)
                for role, key, _ in figures
            ),
        )
        for name in names
    ]
    columns = tuple(title for _, _, title in figures)
    return ScoreTable(title="Fields", row_heading="Field", columns=columns, rows=tuple(rows))


def _behaviour_table(sets: Mapping[str, Any], base_sets: Mapping[str, Any]) -> ScoreTable:
    rows = [
        ScoreRow(
            label=label,
            num_examples="",
            cells=tuple(
                _cell(
                    _get(sets.get(role), "behaviour"),
                    _get(base_sets.get(role), "behaviour"),
                    key,
                    is_less_better=True,
                )
                for role, _ in _BEHAVIOUR_ROLES
            ),
        )
        for key, label in _BEHAVIOURS
    ]
    columns = tuple(label for _, label in _BEHAVIOUR_ROLES)
    return ScoreTable(title="Behaviour", row_heading="Rate", columns=columns, rows=_with_values(rows))


def _with_values(rows: Sequence[ScoreRow]) -> tuple[ScoreRow, ...]:
    has_values = any(cell.value != NO_VALUE for row in rows for cell in row.cells)
    return tuple(rows) if has_values else ()


def _cell(values: Any, base_values: Any, key: str, *, is_less_better: bool = False) -> ScoreCell:
    value, baseline = _get(values, key), _get(base_values, key)
    change, tone = "", ""
    if value is not None and baseline is not None:
        difference = value - baseline
        change = f"{difference:+.3f}"
        if abs(difference) >= _VISIBLE_CHANGE:
            tone = "better" if (difference > 0) is not is_less_better else "worse"
        else:
            change, tone = "0", "faint"
    return ScoreCell(value=format_number(value), baseline=format_number(baseline), change=change, tone=tone)


def _field_of(sets: Mapping[str, Any], role: str, name: str) -> Any:
    return _get(_get(sets.get(role), "fields"), name)


def _get(values: Any, key: str) -> Any:
    return values.get(key) if isinstance(values, Mapping) else None


def _count(value: Any) -> str:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return str(len(list(value)))
    return NO_VALUE if value is None else str(value)
