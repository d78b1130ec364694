"""Equal and nearly equal inputs of several sets, pair of sets by pair of sets.

The evaluation sets are held, as integer shingles, hashes and ids; the training data stream by.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from training.engine.data.near_duplicates import SimilarTextIndex
from training.engine.data.near_duplicates.join import Matches
from training.engine.data.near_duplicates.shingle_sets import Numbers, hash_text
from training.engine.data.shingles import normalise

MAX_LISTED_PAIRS: Final = 20
MAX_PAIRS_PER_EXAMPLE: Final = 3
EXACT: Final = "exact"
NEAR: Final = "near"


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapPair:
    """Two examples of different sets that ask the same.

    Attributes:
        left_id: Id in the left set.
        right_id: Id in the right set.
        kind: "exact" when the normalised inputs are equal, else "near".
        similarity: Jaccard similarity of the inputs' shingles, threshold-1; 1 also of inputs that differ in
            punctuation only.
    """

    left_id: str
    right_id: str
    kind: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What two sets share. Counted the other way round all numbers are the same, left and right swapped.

    Attributes:
        left: Name of the one set.
        right: Name of the other.
        num_exact: Pairs of equal inputs; an input that stands twice in each set makes four.
        num_near: Pairs of similar inputs that are not equal.
        num_left: Examples of the left set in any pair.
        num_right: Examples of the right set in any pair.
        pairs: The first 20, exact ones first, then the most similar.
    """

    left: str
    right: str
    num_exact: int
    num_near: int
    num_left: int
    num_right: int
    pairs: tuple[OverlapPair, ...]


@dataclass(frozen=True, slots=True)
class LeakageMatrix:
    """All pairs of sets that were compared, those without overlap too."""

    overlaps: tuple[Overlap, ...]

    def between(self, left: str, right: str) -> Overlap:
        """Return the overlap of two sets, in the order in which they were compared.

        Raises:
            KeyError: They were not compared.
        """
        for overlap in self.overlaps:
            if (overlap.left, overlap.right) == (left, right):
                return overlap
        raise KeyError((left, right))

    def to_json(self) -> list[dict[str, Any]]:
        """Return the form used in reports."""
        return [
            {**asdict(overlap), "pairs": [asdict(pair) for pair in overlap.pairs]}
            for overlap in self.overlaps
        ]


@dataclass(frozen=True, slots=True)
class InputBatch:
    """Some examples of a set, as far as overlaps need them: ids and inputs of equal length."""

    ids: Sequence[str]
    inputs: Sequence[str]


@dataclass(frozen=True, slots=True, order=True)
class _Ranked:
    """A pair in the order of reports: exact, similar, early ones first."""

    is_near: bool
    distance: float
    left: int
    right: int
    left_id: str
    right_id: str

    def to_pair(self) -> OverlapPair:
        return OverlapPair(
            left_id=self.left_id,
            right_id=self.right_id,
            kind=NEAR if self.is_near else EXACT,
            similarity=-self.distance,
        )


class _Tally:
    """Counts the pairs of two sets and keeps the first few in the order of reports."""

    def __init__(self) -> None:
        self.num_exact = self.num_near = 0
        self.lefts: set[int] = set()
        self.num_left_before = 0
        self.rights: set[int] = set()
        self.best: list[_Ranked] = []

    def add(self, found: "_Found", chosen: Numbers) -> None:
        """Take some pairs of a part."""
        num_exact = int(found.is_exact[chosen].sum())
        self.num_exact += num_exact
        self.num_near += len(chosen) - num_exact
        self.lefts.update(np.unique(found.left[chosen]).tolist())
        self.rights.update(np.unique(found.right[chosen]).tolist())
        best = chosen[found.order(chosen)[:MAX_LISTED_PAIRS]]
        self.best = sorted([*self.best, *found.ranked(best)])[:MAX_LISTED_PAIRS]

    def close_batch(self) -> None:
        """Forget the left numbers, which do not come again."""
        self.num_left_before += len(self.lefts)
        self.lefts.clear()

    def to_overlap(self, left: str, right: str) -> Overlap:
        """Return what was counted."""
        return Overlap(
            left=left,
            right=right,
            num_exact=self.num_exact,
            num_near=self.num_near,
            num_left=self.num_left_before + len(self.lefts),
            num_right=len(self.rights),
            pairs=tuple(item.to_pair() for item in self.best),
        )


class HeldSets:
    """Sets that others are compared with, and each of them with the later ones."""

    def __init__(self, sets: Mapping[str, Iterable[InputBatch]], *, threshold: float) -> None:
        """Index all sets.

        Args:
            sets: By name; read once and not held.
            threshold: Smallest similarity of a near duplicate, above 0 and at most 1.
        """
        self.names = tuple(sets)
        self.ids: list[str] = []
        set_numbers: list[int] = []
        hashes: list[int] = []

        def inputs() -> Iterator[str]:
            for number, batches in enumerate(sets.values()):
                for batch in batches:
                    self.ids.extend(batch.ids)
                    set_numbers.extend([number] * len(batch.ids))
                    hashes.extend(hash_input(text) for text in batch.inputs)
                    yield from batch.inputs

        self._index = SimilarTextIndex(inputs(), threshold=threshold)
        self.set_numbers: Numbers = np.array(set_numbers, dtype=np.int64)
        self.hashes = np.array(hashes, dtype=np.uint64)

    def compare_among_themselves(self) -> list[Overlap]:
        """Return the overlap of each set with each later one."""
        num = len(self.names)
        tallies = {(left, right): _Tally() for left in range(num) for right in range(left + 1, num)}
        for matches in self._index.iterate_matches_within():
            found = _Found(matches, self.ids, self.hashes, self)
            codes = self.set_numbers[matches.left] * num + self.set_numbers[matches.right]
            for (left, right), tally in tallies.items():
                tally.add(found, np.flatnonzero(codes == left * num + right))
        return [
            tally.to_overlap(self.names[left], self.names[right]) for (left, right), tally in tallies.items()
        ]

    def start_stream(self, name: str) -> "StreamedSet":
        """Begin the comparison with a set that streams by."""
        return StreamedSet(name, self)

    def iterate_matches(self, batch: InputBatch) -> Iterator[Matches]:
        """Yield similar pairs of a batch and the held sets."""
        yield from self._index.iterate_matches(batch.inputs)


class StreamedSet:
    """A set that is compared with the held ones batch by batch."""

    def __init__(self, name: str, held: HeldSets) -> None:
        self._name, self._held = name, held
        self._tallies = [_Tally() for _ in held.names]
        self._best_of_held: dict[int, list[_Ranked]] = {}
        self._num_before = 0

    def add(self, batch: InputBatch) -> None:
        """Take some examples."""
        if self._held.ids:
            self._compare(batch)
        self._num_before += len(batch.ids)

    def _compare(self, batch: InputBatch) -> None:
        hashes = np.array([hash_input(text) for text in batch.inputs], dtype=np.uint64)
        for matches in self._held.iterate_matches(batch):
            found = _Found(matches, batch.ids, hashes, self._held, num_before=self._num_before)
            set_numbers = self._held.set_numbers[matches.right]
            for number, tally in enumerate(self._tallies):
                tally.add(found, np.flatnonzero(set_numbers == number))
            for item in found.ranked(found.best_of_each_right(MAX_PAIRS_PER_EXAMPLE)):
                best = self._best_of_held.get(item.right, [])
                self._best_of_held[item.right] = sorted([*best, item])[:MAX_PAIRS_PER_EXAMPLE]
        for tally in self._tallies:
            tally.close_batch()

    def overlaps(self) -> list[Overlap]:
        """Return the overlap with each held set."""
        return [
            tally.to_overlap(self._name, name)
            for tally, name in zip(self._tallies, self._held.names, strict=True)
        ]

    def iterate_best(self) -> Iterator[tuple[str, OverlapPair]]:
        """Yield (name of the held set, pair): for each held example at most three, exact ones alone where
        there are any.
        """
        for right in sorted(self._best_of_held):
            best = self._best_of_held[right]
            name = self._held.names[int(self._held.set_numbers[right])]
            yield from ((name, item.to_pair()) for item in best if item.is_near == best[0].is_near)


class _Found:
    """Similar pairs with what is known of their examples."""

    def __init__(
        self,
        matches: Matches,
        left_ids: Sequence[str],
        left_hashes: npt.NDArray[np.uint64],
        held: HeldSets,
        num_before: int = 0,
    ) -> None:
        self.left, self.right, self.similarity = matches.left, matches.right, matches.similarity
        self.is_exact = left_hashes[matches.left] == held.hashes[matches.right]
        self._left_ids, self._right_ids, self._num_before = left_ids, held.ids, num_before

    def order(self, chosen: Numbers) -> Numbers:
        """Return the order of reports of some pairs, as places in ``chosen``."""
        keys = (self.right, self.left, -self.similarity, ~self.is_exact)
        return np.asarray(np.lexsort(tuple(key[chosen] for key in keys)))

    def best_of_each_right(self, limit: int) -> Numbers:
        """Return the numbers of the first few pairs of each right example."""
        order = np.lexsort((self.left, -self.similarity, ~self.is_exact, self.right))
        rights = self.right[order]
        ranks = np.arange(len(rights)) - np.searchsorted(rights, rights)
        return np.asarray(order[ranks < limit])

    def ranked(self, chosen: Numbers) -> list[_Ranked]:
        """Return some pairs as values."""
        return [
            _Ranked(
                is_near=not self.is_exact[number],
                distance=-float(self.similarity[number]),
                left=self._num_before + int(self.left[number]),
                right=int(self.right[number]),
                left_id=self._left_ids[int(self.left[number])],
                right_id=self._right_ids[int(self.right[number])],
            )
            for number in chosen.tolist()
        ]


def hash_input(text: str) -> int:
    """Return the number by which equal inputs are known: a hash of the normalised text."""
    return hash_text(normalise(text))
