"""Curves of a training run as coordinates for SVG, computed on the server."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 480.0
HEIGHT: Final = 200.0
MARGIN_LEFT: Final = 52.0
MARGIN_RIGHT: Final = 12.0
MARGIN_TOP: Final = 16.0
MARGIN_BOTTOM: Final = 26.0
MAX_DRAWN_POINTS: Final = 600
"""More points than the chart is wide cannot be told apart; each stretch keeps its lowest and highest."""
MAX_DOTS: Final = 12
"""So few points are drawn as dots, too: a line alone would hide how few they are."""
NUM_GRID_LINES: Final = 5
LEAST_TICK_DISTANCE: Final = 48.0
"""Between the middles of two labels below the axis."""

Point = tuple[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPlan:
    """What one chart shows.

    Attributes:
        title: With the unit.
        names: Curves on the same axes, the main one first.
        scale: Factor on the values, such as 1e-9 for bytes in GB.
    """

    title: str
    names: tuple[str, ...]
    scale: float = 1.0


CHARTS: Final = (
    ChartPlan(title="Loss", names=("loss", "held_out_loss")),
    ChartPlan(title="Gradient norm", names=("gradient_norm",)),
    ChartPlan(title="Learning rate", names=("learning_rate",)),
    ChartPlan(title="Tokens per second", names=("tokens_per_second",)),
    ChartPlan(title="Memory (GB)", names=("memory_bytes",), scale=1e-9),
    ChartPlan(title="Padding (part of the computed tokens)", names=("padding_fraction",)),
)
_SERIES_LABELS: Final[Mapping[str, str]] = {"loss": "training", "held_out_loss": "held out"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that begins at a step, to be marked in every chart: its number in a list, its severity."""

    step: int
    number: int
    severity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMark:
    """A mark in a chart; marks at one step share a label such as "1, 2" and the first one's severity."""

    position: float
    label: str
    severity: str


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
    marks: tuple[PlacedMark, ...] = ()


def build_charts(curves: Mapping[str, Sequence[Point]], marks: Sequence[Mark] = ()) -> tuple[Chart, ...]:
    """The charts for which there are points.

    Args:
        curves: Name to (step, value), in the order of steps.
        marks: Where something begins, in the order of their numbers.
    """
    charts = (_plan_chart(plan, curves, marks) for plan in CHARTS)
    return tuple(chart for chart in charts if chart is not None)


def draw_chart(title: str, series: Mapping[str, Sequence[Point]], marks: Sequence[Mark] = ()) -> Chart | None:
    """One chart; None without points.

    Args:
        title: With the unit.
        series: Label to (step, value), in the order of steps.
        marks: As in `build_charts`; those outside the drawn steps are left out.
    """
    present = {label: points for label, points in series.items() if points}
    if not present:
        return None
    steps = [step for points in present.values() for step, _ in points]
    values = [value for points in present.values() for _, value in points]
    extent = (min(steps), max(steps))
    grid = _grid(min(values), max(values))
    return Chart(
        title=title,
        series=tuple(
            _build_series(label, points, extent, (grid[0], grid[-1])) for label, points in present.items()
        ),
        x_ticks=tuple(
            Tick(position=_place_x(step, extent), label=str(step)) for step in _choose_steps(extent)
        ),
        y_ticks=tuple(
            Tick(position=_place_y(value, (grid[0], grid[-1])), label=format_value(value)) for value in grid
        ),
        marks=tuple(_place_marks(marks, extent)),
    )


def format_value(value: float) -> str:
    """A number for an axis: at most three digits that count.

    >>> format_value(0.0002)
    '0.0002'
    """
    return f"{value:.3g}" if abs(value) < 1000 or abs(value) >= 1e6 else f"{value:.0f}"


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


def _plan_chart(
    plan: ChartPlan, curves: Mapping[str, Sequence[Point]], marks: Sequence[Mark]
) -> Chart | None:
    series = {
        _SERIES_LABELS.get(name, ""): [(step, value * plan.scale) for step, value in curves[name]]
        for name in plan.names
        if curves.get(name)
    }
    return draw_chart(plan.title, series, marks)


def _build_series(
    label: str, points: Sequence[Point], steps: tuple[int, int], values: tuple[float, float]
) -> Series:
    placed = [(_place_x(step, steps), _place_y(value, values)) for step, value in thin_out(points)]
    return Series(
        label=label,
        path=" ".join(f"{x:.1f},{y:.1f}" for x, y in placed),
        last=format_value(points[-1][1]),
        dots=tuple(placed) if len(placed) <= MAX_DOTS else (),
    )


def _place_marks(marks: Sequence[Mark], steps: tuple[int, int]) -> Iterable[PlacedMark]:
    by_step: dict[int, list[Mark]] = {}
    for mark in marks:
        if steps[0] <= mark.step <= steps[1]:
            by_step.setdefault(mark.step, []).append(mark)
    for step, same in sorted(by_step.items()):
        yield PlacedMark(
            position=_place_x(step, steps),
            label=", ".join(str(mark.number) for mark in same),
            severity=same[0].severity,
        )


def _choose_steps(steps: tuple[int, int]) -> list[int]:
    """Steps to label: the ends, and round ones between them where there is room."""
    first, last = steps
    chosen = sorted({first, last})
    room = [_place_x(step, steps) for step in chosen]
    for value in _grid(float(first), float(last)):
        step = round(value)
        position = _place_x(step, steps) if first < step < last else None
        if position is not None and all(abs(position - other) >= LEAST_TICK_DISTANCE for other in room):
            chosen.append(step)
            room.append(position)
    return sorted(chosen)


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
