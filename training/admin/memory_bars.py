"""The ledgers of an estimate as stacked bars: coordinates for SVG, computed on the server.

A bar shows the least of each item and, after them, how much more it may become at most. Bars that are longer
than everything else by far are cut off at the right, so that the others can be told apart.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from training.engine.memory.cards import BYTES_PER_GB
from training.engine.memory.comparison import MemoryComparison
from training.engine.memory.estimate import MemoryEstimate
from training.engine.memory.wording import METHOD_NAMES, gigabytes, name_item

WIDTH: Final = 800.0
LEFT: Final = 190.0
RIGHT: Final = 690.0
"""Bars end here; the totals stand beyond."""
TOP: Final = 8.0
LABEL_HEIGHT: Final = 15.0
BAR_HEIGHT: Final = 24.0
BAR_DISTANCE: Final = 38.0
AXIS_HEIGHT: Final = 26.0
CHARACTER_WIDTH: Final = 6.6
"""Of the labels' font, on the wide side."""
CARD_ROOM: Final = 1.08
"""The scale reaches this far beyond the largest card."""
NUM_TICKS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One item of a bar, or `spread`, what it may become more; in SVG units. `label` says it in words."""

    name: str
    x: float
    width: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One ledger. `is_cut`: it is longer than is drawn."""

    label: str
    y: float
    parts: tuple[Part, ...]
    total: str
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A labelled place on the scale; `y` is the base line of its label."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """All bars over one scale. `names` are the items that are drawn, for the legend."""

    bars: tuple[Bar, ...]
    cards: tuple[Place, ...]
    ticks: tuple[Place, ...]
    names: tuple[tuple[str, str], ...]
    top: float
    bottom: float
    height: float


def draw_bars(comparison: MemoryComparison) -> BarChart:
    """Draws a bar for each method on one card, and one for each that is spread over several cards."""
    ledgers = list(_list_ledgers(comparison))
    limit = _choose_limit(comparison)
    cards = _place_cards(comparison, limit)
    top = TOP + LABEL_HEIGHT * len({card.y for card in cards})
    bottom = top + BAR_DISTANCE * len(ledgers)
    first = top + (BAR_DISTANCE - BAR_HEIGHT) / 2
    return BarChart(
        bars=tuple(
            _draw_bar(label, estimate, y=first + BAR_DISTANCE * number, limit=limit)
            for number, (label, estimate) in enumerate(ledgers)
        ),
        cards=cards,
        ticks=tuple(
            Place(x=_place(value * BYTES_PER_GB, limit), y=bottom + 16, label=f"{value:g} GB")
            for value in _list_ticks(limit / BYTES_PER_GB)
        ),
        names=tuple(
            dict.fromkeys(
                (line.name, name_item(line.name))
                # Full fine-tuning comes first and has no frozen weights, with which the others begin.
                for _, estimate in reversed(ledgers)
                for line in estimate.lines
                if line.low_bytes
            )
        ),
        top=top,
        bottom=bottom,
        height=bottom + AXIS_HEIGHT,
    )


def _list_ledgers(comparison: MemoryComparison) -> Iterator[tuple[str, MemoryEstimate]]:
    for method in comparison.methods:
        name = METHOD_NAMES[method.method]
        yield name, method.estimate
        for fit in method.fits:
            if fit.is_sharded:
                yield f"{name}, {fit.card.label}", fit.estimate


def _choose_limit(comparison: MemoryComparison) -> float:
    """The end of the scale in bytes: the largest card or adapter training; where there is neither, full
    fine-tuning.
    """
    totals = {method.method: method.estimate.high_bytes for method in comparison.methods}
    adapters = [total for method, total in totals.items() if method != "full"]
    cards = [card.memory_bytes * CARD_ROOM for card in comparison.request.cards]
    return max([*cards, *adapters], default=0.0) or max(totals.values())


def _draw_bar(label: str, estimate: MemoryEstimate, *, y: float, limit: float) -> Bar:
    parts: list[Part] = []
    begin = 0.0
    for line in estimate.lines:
        end = begin + line.low_bytes
        text = f"{name_item(line.name)}: {gigabytes(line.low_bytes, line.high_bytes)} GB"
        parts += _draw_part(line.name, begin, end, limit, text)
        begin = end
    more = f"up to {(estimate.high_bytes - begin) / BYTES_PER_GB:.1f} GB more"
    parts += _draw_part("spread", begin, estimate.high_bytes, limit, more)
    total = f"{gigabytes(estimate.low_bytes, estimate.high_bytes)} GB"
    return Bar(label=label, y=y, parts=tuple(parts), total=total, is_cut=estimate.high_bytes > limit)


def _draw_part(name: str, begin: float, end: float, limit: float, label: str) -> list[Part]:
    left, right = _place(begin, limit), _place(end, limit)
    return [Part(name=name, x=left, width=round(right - left, 1), label=label)] if right > left else []


def _place_cards(comparison: MemoryComparison, limit: float) -> tuple[Place, ...]:
    """A line for each size of card; labels that would touch stand in rows above each other."""
    sizes = sorted({card.memory_bytes for card in comparison.request.cards})
    ends: list[float] = []
    placed: list[tuple[float, int, str]] = []
    for size in sizes:
        x, label = _place(size, limit), f"{size / BYTES_PER_GB:.4g} GB"
        half = (len(label) + 1) * CHARACTER_WIDTH / 2
        row = next((row for row, end in enumerate(ends) if end < x - half), len(ends))
        ends[row : row + 1] = [x + half]
        placed.append((x, row, label))
    return tuple(
        Place(x=x, y=TOP + LABEL_HEIGHT * (len(ends) - row) - 4, label=label) for x, row, label in placed
    )


def _list_ticks(limit: float) -> Sequence[float]:
    """Round values from 0 at distances of 1, 2 or 5 times a power of ten."""
    raw = limit / NUM_TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    distance = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    return [number * distance for number in range(math.floor(limit / distance) + 1)]


def _place(value: float, limit: float) -> float:
    return round(LEFT + min(value / limit, 1.0) * (RIGHT - LEFT), 1)
