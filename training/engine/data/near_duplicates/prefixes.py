"""Candidates of an exact similarity join: pairs of sets that can be similar by sizes and places alone.

Two sets of sizes a and b have Jaccard similarity >= t exactly when they share at least
m = ceil(t (a + b) / (1 + t)) shingles. With all shingles in one fixed order, the first that such a pair
shares stands at a place <= a - m in the one set and <= b - m in the other (prefix and positional filter), and
t a <= b <= a / t (length filter): Bayardo et al., "Scaling up all pairs similarity search", 2007; Xiao et
al., "Efficient similarity joins for near duplicate detection", 2008.

Occurrences are sorted by shingle, size of the set and place, so that what passes the filters is a product of
two ranges. Ranges are compared, not pairs: a boilerplate that all texts share costs nothing unless they are
similar.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from training.engine.data.near_duplicates.shingle_sets import Keys, Numbers, ShingleSets, spread

Rows = npt.NDArray[np.int32]

_MAX_PAIRS_AT_A_TIME: Final = 1_000_000
_SLACK: Final = 1e-7
"""Keeps 0.85 * 20 = 17.000000000000004 from being rounded up to 18; only makes the filters wider."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The first shingles of sets, grouped by shingle and size of the set.

    Attributes:
        rows: [num_entries] numbers of the sets, sorted by shingle, size, place.
        place_codes: [num_entries] ascending: the group times 2^32, plus the shingle's place in its set.
        group_starts: [num_groups + 1] in ``rows``.
        group_codes: [num_groups] ascending: the shingle's number times 2^32, plus the size of the sets.
        shingles: [num_shingles] ascending.
        shingle_groups: [num_shingles + 1] first group of each shingle.
    """

    rows: Rows
    place_codes: Numbers
    group_starts: Numbers
    group_codes: Numbers
    shingles: Keys
    shingle_groups: Numbers

    @property
    def group_sizes(self) -> Numbers:
        """Size of the sets of each group: [num_groups]."""
        return self.group_codes & (2**32 - 1)


def collect_prefixes(sets: ShingleSets, rows: Numbers, threshold: float) -> Prefixes:
    """Return the prefixes of some of the sets, in which a similar set's first shared shingle must lie."""
    sizes = sets.starts[rows + 1] - sets.starts[rows]
    lengths = np.where(sizes > 0, sizes - np.ceil(threshold * sizes - _SLACK).astype(np.int64) + 1, 0)
    lengths = np.minimum(lengths, sizes)
    keys = sets.keys[spread(sets.starts[rows], lengths)]
    places = spread(np.zeros(len(rows), dtype=np.int64), lengths)
    entry_sizes = np.repeat(sizes, lengths)
    order = np.lexsort((places, entry_sizes, keys))
    keys, entry_sizes = keys[order], entry_sizes[order]
    is_new_shingle = np.ones(len(keys), dtype=bool)
    is_new_shingle[1:] = keys[1:] != keys[:-1]
    is_new_group = is_new_shingle.copy()
    is_new_group[1:] |= entry_sizes[1:] != entry_sizes[:-1]
    group_firsts = np.flatnonzero(is_new_group)
    shingle_numbers = np.cumsum(is_new_shingle)[group_firsts] - 1
    return Prefixes(
        rows=np.repeat(rows, lengths)[order].astype(np.int32),
        place_codes=_join_numbers(np.cumsum(is_new_group) - 1, places[order]),
        group_starts=np.append(group_firsts, len(keys)),
        group_codes=_join_numbers(shingle_numbers, entry_sizes[group_firsts]),
        shingles=keys[is_new_shingle],
        shingle_groups=np.append(np.flatnonzero(is_new_shingle[group_firsts]), len(group_firsts)),
    )


@dataclass(frozen=True, slots=True)
class Products:
    """Ranges of entries whose pairs all pass the filters: product i pairs ``num_left[i]`` entries of the left
    prefixes from ``left_starts[i]`` on with ``num_right[i]`` of the right ones.
    """

    left_starts: Numbers
    right_starts: Numbers
    num_left: Numbers
    num_right: Numbers
    shingles: Keys

    @property
    def num_pairs(self) -> int:
        """Pairs, as often as they share a shingle of both prefixes."""
        return int((self.num_left * self.num_right).sum())


def match_prefixes(left: Prefixes, right: Prefixes, threshold: float, *, is_self: bool) -> Products:
    """Return what passes length and positional filter.

    Args:
        left: Of the one collection.
        right: Of the other, or the same object.
        threshold: Smallest similarity of interest.
        is_self: Whether both are the same collection: then only pairs whose right set is at least as large
            as the left one are formed.
    """
    right_groups, left_groups = _match_sizes(left, right, threshold, is_self=is_self)
    left_sizes, right_sizes = left.group_sizes[left_groups], right.group_sizes[right_groups]
    shared = np.ceil(threshold / (1 + threshold) * (left_sizes + right_sizes) - _SLACK).astype(np.int64)
    num_left = _count_places(left, left_groups, left_sizes - shared)
    num_right = _count_places(right, right_groups, right_sizes - shared)
    is_filled = (num_left > 0) & (num_right > 0)
    right_groups = right_groups[is_filled]
    return Products(
        left_starts=left.group_starts[left_groups[is_filled]],
        right_starts=right.group_starts[right_groups],
        num_left=num_left[is_filled],
        num_right=num_right[is_filled],
        shingles=right.shingles[right.group_codes[right_groups] >> 32],
    )


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs of sets and the shingle that brought them together; all [num_pairs]."""

    left: Numbers
    right: Numbers
    shingles: Keys

    def choose(self, chosen: npt.NDArray[np.bool_] | Numbers | slice) -> "Candidates":
        """Return some of them."""
        return Candidates(self.left[chosen], self.right[chosen], self.shingles[chosen])


def iterate_ranges(products: Products) -> Iterator[tuple[int, int]]:
    """Yield runs of products (first, end) of together at most a million pairs; a greater one is a run of its
    own.
    """
    ends = np.cumsum(products.num_left * products.num_right)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        end = int(np.searchsorted(ends, before + _MAX_PAIRS_AT_A_TIME, side="right"))
        yield first, max(end, first + 1)
        first = max(end, first + 1)


def form_candidates(
    products: Products,
    left: Prefixes,
    right: Prefixes,
    products_range: tuple[int, int],
    pairs: tuple[int, int],
) -> Candidates:
    """Return of all pairs of a run of products those numbered from pairs[0] to pairs[1] - 1."""
    part = slice(*products_range)
    num_right = products.num_right[part]
    ends = np.cumsum(products.num_left[part] * num_right)
    numbers = np.arange(*pairs, dtype=np.int64)
    owners = np.searchsorted(ends, numbers, side="right")
    within = numbers - np.concatenate([[0], ends])[owners]
    of_left, of_right = np.divmod(within, num_right[owners])
    return Candidates(
        left=left.rows[products.left_starts[part][owners] + of_left].astype(np.int64),
        right=right.rows[products.right_starts[part][owners] + of_right].astype(np.int64),
        shingles=products.shingles[part][owners],
    )


def _match_sizes(
    left: Prefixes, right: Prefixes, threshold: float, *, is_self: bool
) -> tuple[Numbers, Numbers]:
    """Return (right group, left group) of all pairs of groups with the same shingle and close sizes."""
    places = np.searchsorted(left.shingles, right.shingles)
    clipped = np.minimum(places, max(len(left.shingles) - 1, 0))
    is_known = left.shingles[clipped] == right.shingles if len(left.shingles) else np.zeros(len(places), bool)
    groups_per_shingle = np.diff(right.shingle_groups)
    right_groups = np.flatnonzero(np.repeat(is_known, groups_per_shingle))
    left_shingles = np.repeat(places, groups_per_shingle)[right_groups]
    sizes = right.group_sizes[right_groups]
    smallest = np.ceil(threshold * sizes - _SLACK).astype(np.int64)
    largest = sizes if is_self else np.floor(sizes / threshold + _SLACK).astype(np.int64)
    lows = np.searchsorted(left.group_codes, _join_numbers(left_shingles, smallest))
    highs = np.searchsorted(left.group_codes, _join_numbers(left_shingles, largest), side="right")
    counts = np.maximum(highs - lows, 0)
    return np.repeat(right_groups, counts), spread(lows, counts)


def _count_places(prefixes: Prefixes, groups: Numbers, last_places: Numbers) -> Numbers:
    """Return how many entries of each group stand at or before a place; -1 and less give 0."""
    ends = np.searchsorted(
        prefixes.place_codes, _join_numbers(groups, np.maximum(last_places, 0)), side="right"
    )
    return np.where(last_places < 0, 0, ends - prefixes.group_starts[groups])


def _join_numbers(high: Numbers, low: Numbers) -> Numbers:
    return np.asarray((high << 32) | np.minimum(low, 2**32 - 1), dtype=np.int64)
