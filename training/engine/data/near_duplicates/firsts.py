"""Which example of a kind comes first: near duplicates by comparison with kept ones only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from training.engine.data.near_duplicates.join import (
    Flags,
    Matches,
    PreparedJoin,
    intersect,
    one_more_each,
    prepare_join,
    prepare_self_join,
)
from training.engine.data.near_duplicates.shingle_sets import Numbers, ShingleSets

_MIN_DIRECT_CANDIDATES: Final = 50_000
_DIRECT_CANDIDATES_PER_ROW: Final = 8
_MAX_LEAF: Final = 64


@dataclass(frozen=True, slots=True)
class Firsts:
    """What each example is a near duplicate of.

    Attributes:
        first: [num_examples] number of the earliest kept example that it is similar to; its own number when
            it is kept.
        similarity: [num_examples] similarity to that one in the first of the collections, 0-1; 1 for kept
            ones.
    """

    first: Numbers
    similarity: npt.NDArray[np.float64]


class FirstsFinder:
    """Keeps the first example and drops what is similar to a kept one; there are no chains.

    Two examples are similar when each of their facets (input, answer) is, and their labels are equal. Where
    many are similar the rows are halved again and again, so that a cluster costs its length, not its square.
    """

    def __init__(self, facets: Sequence[ShingleSets], *, threshold: float, labels: Numbers) -> None:
        """Take what is compared.

        Args:
            facets: At least one; all of [num_examples].
            threshold: Smallest similarity of near duplicates, above 0 and at most 1.
            labels: [num_examples] what must be equal besides.
        """
        self._facets, self._threshold, self._labels = facets, threshold, labels
        self._first = np.arange(len(labels), dtype=np.int64)
        self._similarity = np.ones(len(labels), dtype=np.float64)

    def find(self, rows: Numbers) -> Firsts:
        """Return the firsts among some of the examples; the others stay as they are.

        Args:
            rows: Ascending numbers.
        """
        self._settle(rows)
        return Firsts(self._first, self._similarity)

    def _settle(self, rows: Numbers) -> Numbers:
        """Decide rows that are similar to nothing kept before them; return those kept."""
        if len(rows) < 2:
            return rows
        number, join = self._choose(
            [prepare_self_join(s, rows, threshold=self._threshold) for s in self._facets]
        )
        limit = max(_MIN_DIRECT_CANDIDATES, _DIRECT_CANDIDATES_PER_ROW * len(rows))
        if join.num_candidates <= limit or len(rows) <= _MAX_LEAF:
            self._settle_pairs(number, join)
            return self._kept(rows)
        # Not held while the halves make theirs.
        del join
        middle = len(rows) // 2
        kept = self._settle(rows[:middle])
        later = rows[middle:]
        self._drop_similar(kept, later)
        return np.concatenate([kept, self._settle(self._kept(later))])

    def _kept(self, rows: Numbers) -> Numbers:
        return np.asarray(rows[self._first[rows] == rows])

    def _drop_similar(self, kept: Numbers, later: Numbers) -> None:
        joins = [prepare_join(s, kept, s, later, threshold=self._threshold) for s in self._facets]
        number, join = self._choose(joins)
        for candidates in join.iterate_candidates(self):
            for part in one_more_each(candidates):
                part = part.choose(self.wants(part.left, part.right))
                matches = self._confirm(number, join.verify(part))
                # Written from last to first, so that the earliest stays.
                matches = matches.choose(np.lexsort((-matches.left, matches.right)))
                self._first[matches.right] = matches.left
                self._similarity[matches.right] = matches.similarity

    def wants(self, left: Numbers, right: Numbers) -> Flags:
        """Return which pairs would give the right one its first kept example or an earlier one."""
        first = self._first[right]
        return np.asarray((first == right) | (left < first))

    def wants_any(self, left: Numbers, right: Numbers) -> bool:
        """Return whether any pair of two lists would."""
        first = self._first[right]
        return bool(((first == right) | (left.min() < first)).any())

    def _settle_pairs(self, number: int, join: PreparedJoin) -> None:
        parts = [self._confirm(number, found) for found in join.iterate_matches()]
        if not parts:
            return
        left = np.concatenate([part.left for part in parts])
        right = np.concatenate([part.right for part in parts])
        similarity = np.concatenate([part.similarity for part in parts])
        order = np.lexsort((left, right))
        for earlier, later, value in zip(
            left[order].tolist(), right[order].tolist(), similarity[order].tolist(), strict=True
        ):
            if self._first[later] == later and self._first[earlier] == earlier:
                self._first[later] = earlier
                self._similarity[later] = value

    def _choose(self, joins: Sequence[PreparedJoin]) -> tuple[int, PreparedJoin]:
        """Return the facet that brings the fewest pairs together, and its join."""
        return min(enumerate(joins), key=lambda item: (item[1].num_candidates, item[0]))

    def _confirm(self, number: int, found: Matches) -> Matches:
        """Return those pairs that are similar in the other facets too; similarity is that of the first
        facet.
        """
        found = found.choose(self._labels[found.left] == self._labels[found.right])
        for other, sets in enumerate(self._facets):
            if other == number:
                continue
            similarity, is_similar = self._compare(sets, found)
            if other == 0:
                found = Matches(found.left, found.right, similarity)
            found = found.choose(is_similar)
        return found

    def _compare(self, sets: ShingleSets, found: Matches) -> tuple[npt.NDArray[np.float64], Flags]:
        num_shared, _ = intersect(sets, found.left, sets, found.right)
        union = sets.sizes_of(found.left) + sets.sizes_of(found.right) - num_shared
        similarity = np.asarray(num_shared / np.maximum(union, 1))
        return similarity, similarity >= self._threshold
