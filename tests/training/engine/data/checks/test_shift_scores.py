import math

import numpy as np
import pytest

from training.engine.data.checks.shift_scores import MAX_SHIFT, SHIFTS, ShiftScores, compute_z


def test_z_by_hand() -> None:
    # Values 1, 2, 3: mean 2, sample deviation 1, error 1/sqrt(3).
    assert compute_z(3, 6, 14) == pytest.approx(2 * math.sqrt(3))
    assert compute_z(4, 4, 4) == math.inf
    assert compute_z(4, 0, 0) == 0


def fill(scores: ShiftScores, num_rows: int, own: float, other: float, best: int, first: int = 1) -> None:
    for row in range(first, first + num_rows):
        values = np.full(len(SHIFTS), 0.1)
        values[MAX_SHIFT] = own
        values[MAX_SHIFT + best] = other + 0.01 * (row % 2)
        scores.add(row, f"e{row}", values, np.zeros(len(SHIFTS)))


def test_the_best_shift_stands_out() -> None:
    scores = ShiftScores()
    fill(scores, 60, own=0.2, other=0.6, best=-3)
    found = scores.find_better_shift()
    assert found is not None
    assert (found.shift, found.num_rows, found.rows.first, found.rows.last) == (-3, 60, 1, 60)
    assert found.score == pytest.approx(0.605)
    assert found.own_score == pytest.approx(0.2)
    assert found.rows.example_ids == ("e1", "e2", "e3", "e4", "e5")


def test_a_small_gain_is_not_enough() -> None:
    scores = ShiftScores()
    fill(scores, 60, own=0.5, other=0.6, best=2)
    assert scores.find_better_shift() is None


def test_missing_pairs_and_few_rows() -> None:
    scores = ShiftScores()
    for row in range(1, 200):
        scores.add(row, f"e{row}", np.full(len(SHIFTS), np.nan), np.zeros(len(SHIFTS)))
    assert (scores.num_rows, scores.find_better_shift(), scores.compute_own_z()) == (0, None, 0.0)
    few = ShiftScores()
    fill(few, 49, own=0.0, other=0.9, best=1)
    assert few.find_better_shift() is None


def test_blocks_are_merged_and_lose_nothing() -> None:
    scores = ShiftScores()
    fill(scores, 40_000, own=0.6, other=0.2, best=1)
    assert scores.num_rows == 40_000
    assert scores.find_better_shift() is None and scores.find_unrelated_rows() is None
    assert scores.compute_own_z() > 100


def test_rows_without_any_neighbour_are_no_rest() -> None:
    # All pairs of the second block are left out, as among rows that ask the same: nothing to compare with.
    scores = ShiftScores()
    fill(scores, 500, own=0.6, other=0.1, best=2)
    for row in range(501, 561):
        scores.add(row, f"e{row}", np.full(len(SHIFTS), np.nan), np.zeros(len(SHIFTS)))
    assert scores.find_unrelated_rows() is None
