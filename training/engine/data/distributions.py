"""Distributions of lengths, counted by value, so that memory depends on the longest text and not on how many
there are.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

MAX_BINS = 24
SHOWN_QUANTILES: Mapping[str, float] = {"p5": 0.05, "p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts between edges.

    Attributes:
        edges: One more than counts, rising; bin i holds lengths from edges[i] to edges[i + 1] - 1.
        counts: How many lengths lie in each bin.
        quantiles: By name (``p50``) the nearest-rank quantile; ``max`` the longest. Empty when nothing was
            counted.
        num_values: How many lengths were counted.
    """

    edges: tuple[int, ...]
    counts: tuple[int, ...]
    quantiles: Mapping[str, int]
    num_values: int

    def to_json(self) -> dict[str, Any]:
        """Return the form used in cards."""
        return {
            "edges": list(self.edges),
            "counts": list(self.counts),
            "quantiles": dict(self.quantiles),
            "num_values": self.num_values,
        }


class LengthCounter:
    """Counts lengths."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, length: int) -> None:
        """Count one length, 0 or more."""
        self._counts[length] += 1

    @property
    def num_values(self) -> int:
        """How many lengths were counted."""
        return self._counts.total()

    def quantile(self, fraction: float) -> int | None:
        """Return the nearest-rank quantile: the smallest length with at least this fraction (0-1) of all
        lengths at or below it; None when nothing was counted.
        """
        if not self._counts:
            return None
        # The small number keeps 0.95 * 20 = 19.000000000000004 from being rounded up to rank 20.
        rank = max(1, math.ceil(fraction * self.num_values - 1e-9))
        lengths = sorted(self._counts)
        reached = accumulate(self._counts[length] for length in lengths)
        return next(length for length, total in zip(lengths, reached, strict=True) if total >= rank)

    def count_above(self, length: int) -> int:
        """Return how many lengths are greater than one."""
        return sum(num for value, num in self._counts.items() if value > length)

    def histogram(self) -> Histogram:
        """Return at most 24 bins of equal width over all lengths."""
        if not self._counts:
            return Histogram(edges=(0, 1), counts=(0,), quantiles={}, num_values=0)
        lowest, highest = min(self._counts), max(self._counts)
        width = max(1, math.ceil((highest - lowest + 1) / MAX_BINS))
        edges = tuple(range(lowest, highest + width + 1, width))
        quantiles = {name: self.quantile(fraction) or 0 for name, fraction in SHOWN_QUANTILES.items()}
        return Histogram(
            edges=edges,
            counts=_fill(self._counts, edges),
            quantiles={**quantiles, "max": highest},
            num_values=self.num_values,
        )


def _fill(counts: Mapping[int, int], edges: Sequence[int]) -> tuple[int, ...]:
    width = edges[1] - edges[0]
    bins = [0 for _ in pairwise(edges)]
    for length, num in counts.items():
        bins[(length - edges[0]) // width] += num
    return tuple(bins)
