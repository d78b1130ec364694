"""Curves of a training run as coordinates for SVG, computed on the server."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 480.0
HEIGHT: Final = 200.0
MARGIN_LEFT: Final = 52.0
MARGIN_RIGHT: Final = 12.0
MARGIN_TOP: Final = 10.0
MARGIN_BOTTOM: Final = 26.0
MAX_DRAWN_POINTS: Final = 600
"""More points than the chart is wide cannot be told apart; each stretch keeps its lowest and highest."""

NUM_GRID_LINES: Final = 5

Point = tuple[int, float]

CHARTS: Final[Sequence[tuple[str, tuple[str, ...]]]] = (
    ("Loss", ("loss", "held_out_loss")),
    ("Gradient norm", ("gradient_norm",)),
    ("Learning rate", ("learning_rate",)),
    ("Tokens per second", ("tokens_per_second",)),
)
_SERIES_LABELS: Final[Mapping[str, str]] = {"loss": "training", "held_out_loss": "held out"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A labelled place on an axis, in SVG units."""

    position: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line. `path` is an SVG polyline's points; `last` is the newest value; `dots` are drawn for few
    points.
    """

    label: str
    path: str
    last: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart with its axes."""

    title: str
    series: tuple[Series, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def build_charts(curves: Mapping[str, Sequence[Point]]) -> tuple[Chart, ...]:
    """The charts for which there are points.

    Args:
        curves: Name to (step, value), in the order of steps.
    """
    charts = (_build_chart(title, names, curves) for title, names in CHARTS)
    return tuple(chart for chart in charts if chart is not None)


def format_value(value: float) -> str:
    """A number for an axis: at most three digits that count.

    >>> format_value(0.0002)
    '0.0002'
    """
    return f"{value:.3g}"


def thin_out(points: Sequence[Point], limit: int = MAX_DRAWN_POINTS) -> list[Point]:
    """At most `limit` points that keep the first, the last and every stretch's extremes."""
    if len(points) <= limit:
        return list(points)
    num_stretches = max((limit - 2) // 2, 1)
    inner = points[1:-1]
    kept = [points[0]]
    for number in range(num_stretches):
        begin, end = (len(inner) * n // num_stretches for n in (number, number + 1))
        stretch = inner[begin:end]
        if stretch:
            kept += sorted({min(stretch, key=_value), max(stretch, key=_value)})
    return [*kept, points[-1]]


def _build_chart(title: str, names: Iterable[str], curves: Mapping[str, Sequence[Point]]) -> Chart | None:
    present = {name: curves[name] for name in names if curves.get(name)}
    if not present:
        return None
    steps = [step for points in present.values() for step, _ in points]
    values = [value for points in present.values() for _, value in points]
    first, last = min(steps), max(steps)
    grid = _grid(min(values), max(values))
    return Chart(
        title=title,
        series=tuple(
            _build_series(_SERIES_LABELS.get(name, ""), points, (first, last), (grid[0], grid[-1]))
            for name, points in present.items()
        ),
        x_ticks=tuple(
            Tick(position=_place_x(step, (first, last)), label=str(step)) for step in sorted({first, last})
        ),
        y_ticks=tuple(
            Tick(position=_place_y(value, (grid[0], grid[-1])), label=format_value(value)) for value in grid
        ),
    )


def _build_series(
    label: str, points: Sequence[Point], steps: tuple[int, int], values: tuple[float, float]
) -> Series:
    placed = [(_place_x(step, steps), _place_y(value, values)) for step, value in thin_out(points)]
    return Series(
        label=label,
        path=" ".join(f"{x:.1f},{y:.1f}" for x, y in placed),
        last=format_value(points[-1][1]),
        dots=tuple(placed) if len(placed) <= 12 else (),
    )


def _grid(low: float, high: float) -> list[float]:
    """Round values that enclose the range, at distances of 1, 2 or 5 times a power of ten."""
    span = high - low or abs(high) or 1.0
    raw = span / (NUM_GRID_LINES - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    distance = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first, last = math.floor(low / distance), math.ceil(high / distance)
    if first == last:
        last += 1
    return [number * distance for number in range(first, last + 1)]


def _place_x(step: int, steps: tuple[int, int]) -> float:
    share = 0.5 if steps[0] == steps[1] else (step - steps[0]) / (steps[1] - steps[0])
    return round(MARGIN_LEFT + share * (WIDTH - MARGIN_LEFT - MARGIN_RIGHT), 1)


def _place_y(value: float, values: tuple[float, float]) -> float:
    share = (value - values[0]) / (values[1] - values[0])
    return round(HEIGHT - MARGIN_BOTTOM - share * (HEIGHT - MARGIN_TOP - MARGIN_BOTTOM), 1)


def _value(point: Point) -> float:
    return point[1]
