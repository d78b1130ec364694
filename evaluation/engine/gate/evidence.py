"""The evidence of a decision: two reports and what the suite's owner stated. Read only through checked
accessors.

A number is taken from ``metrics.json``; the rows of the same report give its interval and its examples. Both
must agree: when the rows do not add up to the stated number, the number counts as missing.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Row = Mapping[str, Any]

AGREEMENT_TOLERANCE: Final = 1e-9
"""A stated number and the one from the rows come from the same sums; only the order of addition may
differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One evaluation run's report.

    Attributes:
        metrics: Content of metrics.json; None when there is no such run.
        rows: Rows of examples.jsonl.
    """

    metrics: Mapping[str, Any] | None = None
    rows: Sequence[Row] = ()

    @property
    def form(self) -> str | None:
        """The form that was judged."""
        form = None if self.metrics is None else self.metrics.get("form")
        return form if isinstance(form, str) else None

    def number(self, *path: str) -> float | None:
        """Return a finite number out of the metrics, or None when it is not there or is none."""
        value = self.value(*path)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return float(value)

    def count(self, *path: str) -> int | None:
        """Return a whole number that is not negative, or None."""
        value = self.number(*path)
        return int(value) if value is not None and value >= 0 and value == int(value) else None

    def value(self, *path: str) -> Any:
        """Return what stands under a path of keys in the metrics, or None."""
        node: Any = self.metrics
        for key in path:
            if not isinstance(node, Mapping) or key not in node:
                return None
            node = node[key]
        return node

    def role_rows(self, role: str) -> list[Row]:
        """Return the rows of a set in the judged form."""
        return [row for row in self.rows if row.get("role") == role and row.get("form") == self.form]

    def set_mean(self, role: str, name: str, of_row: Callable[[Row], float | None]) -> "SetMean | None":
        """Return a set's stated mean with the values behind it.

        Args:
            role: The set.
            name: Name of the number in the set's metrics.
            of_row: Gives a row's value.

        Returns:
            None when the number or a row's value is missing, or when the two do not agree.
        """
        stated, num = self.number("sets", role, name), self.count("sets", role, "num_examples")
        return checked_mean(stated, num, self.role_rows(role), of_row)


@dataclass(frozen=True, slots=True)
class SetMean:
    """A mean over a set and the values that it is the mean of.

    Attributes:
        mean: The mean.
        values: By example id, in the order of the rows.
    """

    mean: float
    values: Mapping[str, float]

    @property
    def num_examples(self) -> int:
        """How many values there are."""
        return len(self.values)

    def list(self) -> list[float]:
        """Return the values alone."""
        return list(self.values.values())

    def ids_where(self, condition: Callable[[float], bool]) -> tuple[str, ...]:
        """Return the ids of the examples whose value meets a condition."""
        return tuple(example_id for example_id, value in self.values.items() if condition(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a decision rests on.

    Attributes:
        candidate: The candidate's report.
        baseline: The base model's report on the same suite.
        min_score: The holdout score (0-1) that the suite's owner demands; None when unknown.
        blind_review: ``{"num_outputs": int, "dimensions": {name: {"candidate_mean", "baseline_mean"}}}`` of
            the blind review; None when there was none.
    """

    candidate: Report = field(default_factory=Report)
    baseline: Report = field(default_factory=Report)
    min_score: float | None = None
    blind_review: Mapping[str, Any] | None = None

    @property
    def comparison_fault(self) -> str | None:
        """Why candidate and baseline cannot be compared, or None when they can."""
        if self.baseline.metrics is None:
            return "there is no baseline run"
        if self.candidate.metrics is None:
            return "there is no candidate run"
        template = self.candidate.value("chat_template_sha256")
        if not template or template != self.baseline.value("chat_template_sha256"):
            return "candidate and baseline were not rendered with the same chat template"
        if self.baseline.form != "base":
            return "the baseline report is not that of a base model"
        return None


def checked_mean(
    stated: float | None, num: int | None, rows: Sequence[Row], of_row: Callable[[Row], float | None]
) -> SetMean | None:
    """Return a stated mean with its values, or None when anything is missing or does not agree.

    Args:
        stated: The mean that the metrics state.
        num: The number of examples that they state.
        rows: The rows behind it.
        of_row: Gives a row's value.
    """
    values: dict[str, float] = {}
    for row in rows:
        value, example_id = of_row(row), row.get("example_id")
        if value is None or not math.isfinite(value) or not isinstance(example_id, str):
            return None
        values[example_id] = value
    if stated is None or not values or len(values) != len(rows) or len(values) != num:
        return None
    actual = math.fsum(values.values()) / len(values)
    return SetMean(stated, values) if abs(actual - stated) <= AGREEMENT_TOLERANCE else None


def paired_differences(first: SetMean, second: SetMean) -> dict[str, float] | None:
    """Return first - second by example, or None when they are not over the same examples."""
    if first.values.keys() != second.values.keys():
        return None
    return {example_id: value - second.values[example_id] for example_id, value in first.values.items()}


def row_score(row: Row) -> float | None:
    """Return a row's score."""
    value = row.get("score")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def row_is_strict(row: Row) -> float | None:
    """Return 1 when the output is strict JSON, 0 when not."""
    value = row.get("parse")
    return float(value == "strict") if isinstance(value, str) else None


def row_is_schema_valid(row: Row) -> float | None:
    """Return 1 when the output is valid under the schema, 0 when not."""
    return _flag(row.get("schema_valid"))


def row_behaviour(name: str) -> Callable[[Row], float | None]:
    """Return a function that gives 1 for rows with this behaviour, 0 for others."""

    def of_row(row: Row) -> float | None:
        behaviour = row.get("behaviour")
        return _flag(behaviour.get(name)) if isinstance(behaviour, Mapping) else None

    return of_row


def _flag(value: Any) -> float | None:
    return float(value) if isinstance(value, bool) else None
