"""Whether answers fit the inputs of another row better than their own: paired differences with their error.

For each row and each shift there is a score of how well the answer that many rows further fits the row's
input. The difference to the score of the row's own answer is taken row by row, so that easy and hard inputs
weigh alike; its mean over its standard error is z. Under misalignment by k rows one shift stands out;
without, all differences are negative or noise.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from training.engine.data.checks.check import MAX_LISTED_IDS

MAX_SHIFT = 10
SHIFTS = tuple(range(-MAX_SHIFT, MAX_SHIFT + 1))
"""A shift of s pairs an input with the answer s rows further down; negative ones with an answer above."""
MIN_ROWS = 50
MIN_Z = 4.0
MIN_BLOCK_Z = 5.0
"""Higher, because there are as many comparisons as blocks."""
MIN_RATIO = 1.5
_BLOCK_ROWS = 500
_MAX_BLOCKS = 64

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows of the stream, counted from 1, both ends included, and the ids of the first few."""

    first: int
    last: int
    example_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BetterShift:
    """A shift under which the answers fit clearly better.

    Attributes:
        shift: Rows by which the fitting answer lies further down; negative for further up.
        score: Mean score of the shifted pairs.
        own_score: Mean score of the same inputs with their own answers.
        baseline: Mean score of guessing without the input.
        z: Mean paired difference over its standard error.
        num_rows: Pairs compared.
        rows: The part of the stream that is meant.
    """

    shift: int
    score: float
    own_score: float
    baseline: float
    z: float
    num_rows: int
    rows: RowRange


class _Sums:
    """Sums over the rows of a block; arrays have one place for each shift."""

    def __init__(self, first_row: int) -> None:
        self.first_row = self.last_row = first_row
        self.example_ids: list[str] = []
        self.num = np.zeros(len(SHIFTS))
        self.difference = np.zeros(len(SHIFTS))
        self.squared = np.zeros(len(SHIFTS))
        self.shifted = np.zeros(len(SHIFTS))
        self.own = np.zeros(len(SHIFTS))
        self.baseline = np.zeros(len(SHIFTS))
        self.num_advantages = 0
        self.advantage = 0.0
        self.squared_advantage = 0.0

    @property
    def rows(self) -> RowRange:
        return RowRange(first=self.first_row, last=self.last_row, example_ids=tuple(self.example_ids))

    def add(self, row: int, example_id: str, scores: Floats, baselines: Floats) -> None:
        if len(self.example_ids) < MAX_LISTED_IDS:
            self.example_ids.append(example_id)
        own = scores[MAX_SHIFT]
        present = ~np.isnan(scores)
        present[MAX_SHIFT] = False
        self.last_row = row
        if math.isnan(own) or not present.any():
            return
        difference = np.where(present, scores - own, 0.0)
        self.num += present
        self.difference += difference
        self.squared += difference**2
        self.shifted += np.where(present, scores, 0.0)
        self.own += np.where(present, own, 0.0)
        self.baseline += np.where(present, baselines, 0.0)
        advantage = -float(difference.sum()) / int(present.sum())
        self.num_advantages += 1
        self.advantage += advantage
        self.squared_advantage += advantage**2

    def merge(self, other: "_Sums") -> None:
        self.last_row = max(self.last_row, other.last_row)
        self.example_ids = [*self.example_ids, *other.example_ids][:MAX_LISTED_IDS]
        for name in ("num", "difference", "squared", "shifted", "own", "baseline"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.num_advantages += other.num_advantages
        self.advantage += other.advantage
        self.squared_advantage += other.squared_advantage

    @property
    def fits_in_place(self) -> bool:
        if self.num_advantages < MIN_ROWS:
            return False
        return compute_z(self.num_advantages, self.advantage, self.squared_advantage) > MIN_Z

    def find_better_shift(self, min_z: float) -> BetterShift | None:
        usable = self.num >= MIN_ROWS
        if not usable.any():
            return None
        count = np.where(usable, self.num, 1.0)
        mean = np.where(usable, self.difference / count, -np.inf)
        best = int(np.argmax(np.round(mean, 12)))
        num, score, own = float(count[best]), float(self.shifted[best]), float(self.own[best])
        z = compute_z(num, float(self.difference[best]), float(self.squared[best]))
        score, own, baseline = score / num, own / num, float(self.baseline[best]) / num
        # Scores are compared by what they are above guessing.
        gain, own_gain = score - baseline, max(0.0, own - baseline)
        if z <= min_z or gain < MIN_RATIO * own_gain or gain <= 0:
            return None
        return BetterShift(
            shift=SHIFTS[best],
            score=score,
            own_score=own,
            baseline=baseline,
            z=z,
            num_rows=int(num),
            rows=self.rows,
        )


class ShiftScores:
    """Collects scores row by row, in bounded memory, for the whole and for blocks of rows."""

    def __init__(self) -> None:
        """Start empty."""
        self._blocks: list[_Sums] = []
        self._block_rows = _BLOCK_ROWS

    def add(self, row: int, example_id: str, scores: Floats, baselines: Floats) -> None:
        """Add one row.

        Args:
            row: Its number in the stream, from 1, rising.
            example_id: Of its example.
            scores: [21] for the shifts -10 to 10; NaN where there is no such pair.
            baselines: [21], the scores of guessing without the input; 0 where guessing gives nothing.
        """
        if not self._blocks or row >= self._blocks[-1].first_row + self._block_rows:
            self._blocks.append(_Sums(row))
            if len(self._blocks) > _MAX_BLOCKS:
                self._halve()
        self._blocks[-1].add(row, example_id, scores, baselines)

    def _halve(self) -> None:
        pairs = [self._blocks[place : place + 2] for place in range(0, len(self._blocks), 2)]
        for pair in pairs:
            for second in pair[1:]:
                pair[0].merge(second)
        self._blocks = [pair[0] for pair in pairs]
        self._block_rows *= 2

    @property
    def num_rows(self) -> int:
        """Rows with a score of their own and of some shift."""
        return sum(block.num_advantages for block in self._blocks)

    def find_better_shift(self) -> BetterShift | None:
        """Return the shift under which the whole fits better, or the first stretch of rows with one when
        other rows are in place.
        """
        found = _sum_up(self._blocks).find_better_shift(MIN_Z) if self._blocks else None
        if found is not None and not any(block.fits_in_place for block in self._blocks):
            return found
        return self._find_stretch() or found

    def _find_stretch(self) -> BetterShift | None:
        stretch: list[_Sums] = []
        for block in self._blocks:
            better = block.find_better_shift(MIN_BLOCK_Z)
            previous = stretch[-1].find_better_shift(MIN_BLOCK_Z) if stretch else None
            if better is not None and (previous is None or previous.shift == better.shift):
                stretch.append(block)
            elif stretch:
                break
        return _sum_up(stretch).find_better_shift(MIN_BLOCK_Z) if stretch else None

    def compute_own_z(self) -> float:
        """Return z of the own answers against the mean of the shifted ones; 0 with too few rows."""
        total = _sum_up(self._blocks) if self._blocks else _Sums(1)
        if total.num_advantages < MIN_ROWS:
            return 0.0
        return compute_z(total.num_advantages, total.advantage, total.squared_advantage)

    def find_unrelated_rows(self) -> RowRange | None:
        """Return the rows of a block whose answers fit no better than shifted ones, though those of
        the other blocks do; None when there is none.
        """
        for number, block in enumerate(self._blocks):
            others = [item for place, item in enumerate(self._blocks) if place != number]
            if block.num_advantages < MIN_ROWS or not others:
                continue
            rest = _sum_up(others)
            if rest.num_advantages < MIN_ROWS:
                continue
            own_z = compute_z(block.num_advantages, block.advantage, block.squared_advantage)
            rest_z = compute_z(rest.num_advantages, rest.advantage, rest.squared_advantage)
            if rest_z <= MIN_Z or own_z > 1:
                continue
            difference = rest.advantage / rest.num_advantages - block.advantage / block.num_advantages
            error = math.hypot(_error(rest), _error(block))
            if difference > MIN_BLOCK_Z * error:
                return block.rows
        return None


def compute_z(num: float, total: float, squared: float) -> float:
    """Return the mean over its standard error, from the number, sum and sum of squares; infinite when all
    values are equal and not 0.
    """
    mean = total / num
    variance = max(0.0, squared / num - mean**2) * num / max(1.0, num - 1)
    error = math.sqrt(variance / num)
    if error < 1e-12:
        return 0.0 if abs(mean) < 1e-12 else math.copysign(math.inf, mean)
    return mean / error


def _error(sums: _Sums) -> float:
    mean = sums.advantage / sums.num_advantages
    variance = max(0.0, sums.squared_advantage / sums.num_advantages - mean**2)
    return math.sqrt(variance / sums.num_advantages)


def _sum_up(blocks: Iterable[_Sums]) -> _Sums:
    items = list(blocks)
    total = _Sums(items[0].first_row)
    for item in items:
        total.merge(item)
    return total
