"""The rule table of a report: numbers as text, and the place of value, interval and threshold on a small
bar.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

NO_VALUE: Final = "\u2013"
BAR_WIDTH: Final = 168.0
_BAR_MARGIN: Final = 8.0
_ORDER: Final = {"failed": 0, "inconclusive": 1, "passed": 2, "skipped": 3}
_PADDING_FRACTION: Final = 0.15
"""Room left on each side of the shown values, as a fraction of their span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalBar:
    """Horizontal places (SVG units, 0 to `BAR_WIDTH`) of what a bar shows; None where there is nothing to
    show.
    """

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
    p_value: str
    explanation: str
    num_example_ids: int
    query: str
    bar: IntervalBar | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    """A rule's line, followed by those of its parts."""

    rows: tuple[RuleRow, ...]


def build_rule_groups(rules: Sequence[Mapping[str, Any]]) -> tuple[RuleGroup, ...]:
    """The lines of a decision's rules, those that failed first, those that were skipped last."""
    groups = [RuleGroup(rows=tuple(_rows_of(rule))) for rule in rules]
    return tuple(sorted(groups, key=lambda group: _ORDER.get(group.rows[0].outcome, len(_ORDER))))


def format_number(value: float | None) -> str:
    """Three decimals; a dash for None.

    >>> format_number(0.91666)
    '0.917'
    """
    if value is None:
        return NO_VALUE
    return f"{value:.3f}"


def format_result(value: float | None, *, is_count: bool) -> str:
    """As `format_number`, but counts without decimals."""
    return f"{value:.0f}" if is_count and value is not None else format_number(value)


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
    name = str(rule.get("rule", ""))
    yield _row(rule, name, urlencode({"rule": name}), is_part=False)
    for part in rule.get("parts") or ():
        part_name = str(part.get("name", ""))
        yield _row(part, part_name, urlencode({"rule": name, "part": part_name}), is_part=True)


def _row(result: Mapping[str, Any], name: str, query: str, *, is_part: bool) -> RuleRow:
    interval, p_value = result.get("interval"), result.get("p_value")
    observed, threshold = result.get("observed"), result.get("threshold")
    is_count = interval is None and all(_is_whole(value) for value in (observed, threshold))
    num_examples = result.get("num_examples")
    return RuleRow(
        name=name,
        is_part=is_part,
        outcome=str(result.get("outcome", "")),
        observed=format_result(observed, is_count=is_count),
        threshold=format_result(threshold, is_count=is_count),
        interval=f"{format_number(interval[0])} … {format_number(interval[1])}" if interval else NO_VALUE,
        interval_method=str(result.get("interval_method") or ""),
        num_examples=NO_VALUE if num_examples is None else str(num_examples),
        p_value="" if p_value is None else f"{p_value:.3g}",
        explanation=str(result.get("explanation") or ""),
        num_example_ids=len(result.get("example_ids") or ()),
        query=query,
        bar=build_bar(observed, interval, threshold),
    )


def _is_whole(value: float | None) -> bool:
    return value is None or float(value).is_integer()
