"""Histograms of a dataset card as coordinates for SVG, computed on the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

WIDTH: Final = 480.0
HEIGHT: Final = 160.0
MARGIN_LEFT: Final = 44.0
MARGIN_RIGHT: Final = 12.0
MARGIN_TOP: Final = 18.0
MARGIN_BOTTOM: Final = 22.0
BASE_LINE: Final = HEIGHT - MARGIN_BOTTOM
MIN_BAR_HEIGHT: Final = 1.5
"""A bin that holds anything must be seen beside one that holds a thousand times as much."""

_TITLES: Final[Mapping[str, str]] = {
    "input_characters": "Input, characters",
    "answer_characters": "Answer, characters",
    "total_tokens": "Whole example, tokens",
}
_MARKED_QUANTILES: Final = ("p50", "p95")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bin, in SVG units. `label` says its range and count."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A labelled place on the horizontal axis, in SVG units. `anchor` is where its text begins or ends."""

    x: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnHistogram:
    """One histogram. `quantiles` are shown in words; `marks` are those that are drawn."""

    title: str
    bars: tuple[Bar, ...]
    ends: tuple[Mark, Mark]
    marks: tuple[Mark, ...]
    highest: int
    quantiles: tuple[tuple[str, int], ...]


def draw_histograms(lengths: Mapping[str, Any]) -> tuple[DrawnHistogram, ...]:
    """The histograms of a card's `lengths` for which something was counted.

    Args:
        lengths: Name to a histogram with rising `edges` (one more than `counts`), `counts` and `quantiles`,
            or to None.
    """
    drawn = (_draw(_TITLES.get(name, name), histogram) for name, histogram in lengths.items() if histogram)
    return tuple(item for item in drawn if item is not None)


def _draw(title: str, histogram: Mapping[str, Any]) -> DrawnHistogram | None:
    edges: Sequence[float] = histogram["edges"]
    counts: Sequence[int] = histogram["counts"]
    highest = max(counts, default=0)
    if not highest or len(edges) != len(counts) + 1:
        return None
    span = (edges[0], edges[-1])
    quantiles: Mapping[str, int] = histogram.get("quantiles") or {}
    return DrawnHistogram(
        title=title,
        bars=tuple(
            _draw_bar(low, high, count, span=span, highest=highest)
            for (low, high), count in zip(pairwise(edges), counts, strict=True)
            if count
        ),
        ends=(
            Mark(x=MARGIN_LEFT, label=f"{edges[0]:g}", anchor="start"),
            Mark(x=WIDTH - MARGIN_RIGHT, label=f"{edges[-1] - 1:g}", anchor="end"),
        ),
        marks=tuple(
            _draw_mark(name, quantiles[name], span) for name in _MARKED_QUANTILES if name in quantiles
        ),
        highest=highest,
        quantiles=tuple(quantiles.items()),
    )


def _draw_bar(low: float, high: float, count: int, *, span: tuple[float, float], highest: int) -> Bar:
    left, right = _place(low, span), _place(high, span)
    height = max(MIN_BAR_HEIGHT, count / highest * (BASE_LINE - MARGIN_TOP))
    return Bar(
        x=round(left + 0.5, 1),
        y=round(BASE_LINE - height, 1),
        width=round(max(right - left - 1, 1), 1),
        height=round(height, 1),
        label=f"{low:g} to {high - 1:g}: {count}",
    )


def _draw_mark(name: str, value: float, span: tuple[float, float]) -> Mark:
    # The middle of the unit that the value is: bins hold whole numbers from their lower edge on.
    x = _place(value + 0.5, span)
    anchor = "start" if x < WIDTH / 4 else "end" if x > WIDTH * 3 / 4 else "middle"
    return Mark(x=round(x, 1), label=f"{name} {value:g}", anchor=anchor)


def _place(value: float, span: tuple[float, float]) -> float:
    share = (value - span[0]) / (span[1] - span[0] or 1)
    return MARGIN_LEFT + min(max(share, 0.0), 1.0) * (WIDTH - MARGIN_LEFT - MARGIN_RIGHT)
