"""The rule table of a report: numbers as text, and the place of value, interval and threshold on a small bar."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

BAR_WIDTH: Final = 168.0
_BAR_MARGIN: Final = 8.0
_PADDING_FRACTION: Final = 0.15
"""Room left on each side of the shown values, as a fraction of their span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """Horizontal places (SVG units, 0 to `BAR_WIDTH`) of what a bar shows; None where there is nothing to show."""

    observed: float | None
    low: float | None
    high: float | None
    threshold: float | None
    label: str

    @property
    def interval_width(self) -> float:
        """Width of the interval; at least 1, so that a point interval can be seen."""
        if self.low is None or self.high is None:
            return 0.0
        return max(self.high - self.low, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """One line of the table: a rule, or a part of one (a set, a dimension)."""

    name: str
    is_part: bool
    outcome: str
    observed: str
    threshold: str
    interval: str
    interval_method: str
    num_examples: str
    explanation: str
    num_example_ids: int
    bar: IntervalBar | None


def build_rule_rows(rules: Sequence[Mapping[str, Any]]) -> tuple[RuleRow, ...]:
    """The lines of a decision's rules, each followed by its parts."""
    return tuple(row for rule in rules for row in _rows_of(rule))


def format_number(value: float | None) -> str:
    """Three decimals; an en dash for None.

    >>> format_number(0.91666)
    '0.917'
    """
    if value is None:
        return "–"
    return f"{value:.0f}" if float(value).is_integer() and abs(value) >= 10 else f"{value:.3f}"


def build_bar(
    observed: float | None, interval: Sequence[float] | None, threshold: float | None
) -> IntervalBar | None:
    """The bar of one result; None when there are not two values to set against each other."""
    low, high = (interval[0], interval[1]) if interval else (None, None)
    values = [value for value in (observed, low, high, threshold) if value is not None]
    if len(values) < 2:
        return None
    start, stop = min(values), max(values)
    span = (stop - start) or max(abs(stop), 1.0) * 0.1
    start, stop = start - span * _PADDING_FRACTION, stop + span * _PADDING_FRACTION

    def place(value: float | None) -> float | None:
        if value is None:
            return None
        share = (value - start) / (stop - start)
        return round(_BAR_MARGIN + share * (BAR_WIDTH - 2 * _BAR_MARGIN), 2)

    label = f"value {format_number(observed)}"
    if low is not None:
        label += f", 95 % interval {format_number(low)} to {format_number(high)}"
    if threshold is not None:
        label += f", threshold {format_number(threshold)}"
    return IntervalBar(
        observed=place(observed), low=place(low), high=place(high), threshold=place(threshold), label=label
    )


def _rows_of(rule: Mapping[str, Any]) -> Iterator[RuleRow]:
    yield _row(rule, str(rule.get("rule", "")), is_part=False)
    for part in rule.get("parts") or ():
        yield _row(part, str(part.get("name", "")), is_part=True)


def _row(result: Mapping[str, Any], name: str, *, is_part: bool) -> RuleRow:
    interval = result.get("interval")
    num_examples = result.get("num_examples")
    return RuleRow(
        name=name,
        is_part=is_part,
        outcome=str(result.get("outcome", "")),
        observed=format_number(result.get("observed")),
        threshold=format_number(result.get("threshold")),
        interval=f"{format_number(interval[0])} … {format_number(interval[1])}" if interval else "–",
        interval_method=str(result.get("interval_method") or ""),
        num_examples="–" if num_examples is None else str(num_examples),
        explanation=str(result.get("explanation") or ""),
        num_example_ids=len(result.get("example_ids") or ()),
        bar=build_bar(result.get("observed"), interval, result.get("threshold")),
    )
