"""Choosing which units are held out, so that every stratum gives its part."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from training.engine.data.splitting.report import Unmet

MAX_EXCESS: Final = 1.5
"""For the sake of a stratum that would have none, the holdout set may become this much larger than wanted."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Examples that stay together.

    Attributes:
        priority: Number that orders units; does not depend on their size.
        counts: Examples by number of the stratum.
        may_move: Whether it may be held out.
    """

    priority: int
    counts: Mapping[int, int]
    may_move: bool

    @property
    def size(self) -> int:
        """Examples of all strata."""
        return sum(self.counts.values())


def compute_wanted(sizes: Sequence[int], fraction: float) -> list[int]:
    """Return how many examples each stratum should give: its part by largest remainders, at least one where
    it has two, and never all.

    Args:
        sizes: Examples of each stratum.
        fraction: Part to hold out, 0-1.
    """
    parts = [fraction * size for size in sizes]
    wanted = [int(part) for part in parts]
    num_left = round(fraction * sum(sizes)) - sum(wanted)
    by_remainder = sorted(range(len(sizes)), key=lambda number: (wanted[number] - parts[number], number))
    for number in by_remainder[: max(0, num_left)]:
        wanted[number] += 1
    return [
        min(max(count, 1), size - 1) if size > 1 else 0 for count, size in zip(wanted, sizes, strict=True)
    ]


class UnitChooser:
    """Takes units in the order of their priorities while that brings the strata nearer to what they want."""

    def __init__(self, units: Sequence[Unit], *, sizes: Sequence[int], wanted: Sequence[int]) -> None:
        self._units = units
        self._sizes, self._wanted = sizes, wanted
        self._order = sorted(range(len(units)), key=lambda number: units[number].priority)
        self.got: Counter[int] = Counter()
        self.chosen: set[int] = set()

    def choose(self) -> None:
        """Fill ``chosen`` (numbers of units) and ``got`` (examples by stratum)."""
        for number in self._order:
            unit = self._units[number]
            if unit.may_move and self._improves(unit) and self._leaves_some(unit):
                self._take(number)
        for stratum, wanted in enumerate(self._wanted):
            if wanted and not self.got[stratum]:
                self._take_smallest(stratum)

    def explain(self, names: Sequence[str]) -> Iterator[Unmet]:
        """Yield why strata did not get what they want."""
        num_units: Counter[int] = Counter()
        for unit in self._units:
            num_units.update(unit.counts.keys())
        for stratum, name in enumerate(names):
            wanted, got = self._wanted[stratum], self.got[stratum]
            if self._sizes[stratum] == 1:
                yield Unmet(code="single-example", where=name, message="its only example stays in training")
            elif got < wanted and num_units[stratum] == 1:
                message = f"its {self._sizes[stratum]} examples are one group or cluster and stay in training"
                yield Unmet(code="one-unit", where=name, message=message)
            elif got < wanted:
                message = f"{got} of {wanted} are held out; its other groups or clusters are too large"
                yield Unmet(code="units-too-large", where=name, message=message)
            elif got > wanted:
                message = f"{got} instead of {wanted} are held out, because groups and clusters stay whole"
                yield Unmet(code="units-too-many", where=name, message=message)

    def _improves(self, unit: Unit) -> bool:
        before = after = 0
        for stratum, num in unit.counts.items():
            missing = self._wanted[stratum] - self.got[stratum]
            before += abs(missing)
            after += abs(missing - num)
        return after < before

    def _leaves_some(self, unit: Unit) -> bool:
        return all(self.got[stratum] + num < self._sizes[stratum] for stratum, num in unit.counts.items())

    def _take_smallest(self, stratum: int) -> None:
        """Hold out the smallest unit of a stratum that would have none, unless that is far too much."""
        limit = MAX_EXCESS * sum(self._wanted) + 1
        possible = [
            number
            for number in self._order
            if number not in self.chosen
            and stratum in self._units[number].counts
            and self._units[number].may_move
            and self._leaves_some(self._units[number])
        ]
        if not possible:
            return
        best = min(possible, key=lambda number: self._units[number].size)
        if self.got.total() + self._units[best].size <= limit:
            self._take(best)

    def _take(self, number: int) -> None:
        self.chosen.add(number)
        self.got.update(self._units[number].counts)
