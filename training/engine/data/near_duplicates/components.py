"""Clusters whose members hang together by near duplicates, directly or over others."""

import numpy as np

from training.engine.data.near_duplicates.join import Flags, one_more_each, prepare_self_join
from training.engine.data.near_duplicates.shingle_sets import Numbers, ShingleSets


class Components:
    """Numbers that are united step by step; a component is named by its smallest member.

    It is also the filter of a join that need not compare what hangs together already.
    """

    def __init__(self, num_members: int) -> None:
        self._names = np.arange(num_members, dtype=np.int64)

    def names(self) -> Numbers:
        """Return the name of each member's component: [num_members]."""
        return self._names.copy()

    def unite(self, left: Numbers, right: Numbers) -> None:
        """Unite pairs of members."""
        while True:
            left_names, right_names = self._names[left], self._names[right]
            differ = left_names != right_names
            if not differ.any():
                return
            left_names, right_names = left_names[differ], right_names[differ]
            larger = np.maximum(left_names, right_names)
            np.minimum.at(self._names, larger, np.minimum(left_names, right_names))
            self._flatten()

    def wants(self, left: Numbers, right: Numbers) -> Flags:
        """Return which pairs are not united yet."""
        return np.asarray(self._names[left] != self._names[right])

    def wants_any(self, left: Numbers, right: Numbers) -> bool:
        """Return whether two lists of members lie in more than one component."""
        names = self._names[np.concatenate([left, right])]
        return bool(names.min() != names.max())

    def _flatten(self) -> None:
        while True:
            names = self._names[self._names]
            if np.array_equal(names, self._names):
                return
            self._names = names


def unite_near_duplicates(components: Components, sets: ShingleSets, *, threshold: float) -> None:
    """Unite the numbers of all sets that are similar."""
    rows = np.arange(len(sets), dtype=np.int64)
    join = prepare_self_join(sets, rows, threshold=threshold)
    for candidates in join.iterate_candidates(components):
        for part in one_more_each(candidates):
            matches = join.verify(part.choose(components.wants(part.left, part.right)))
            components.unite(matches.left, matches.right)
