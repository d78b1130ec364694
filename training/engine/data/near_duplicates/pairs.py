"""All pairs of similar texts: within one collection, or between a held one and texts that stream by."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from training.engine.data.near_duplicates.join import (
    EarlierLeft,
    EveryPair,
    Matches,
    PairFilter,
    PreparedJoin,
)
from training.engine.data.near_duplicates.prefixes import collect_prefixes
from training.engine.data.near_duplicates.shingle_sets import (
    Numbers,
    SetCollector,
    ShingleHasher,
    ShingleSets,
    iterate_batches,
)

_ROWS_AT_A_TIME: Final = 16_384
_MAX_CANDIDATES_AT_A_TIME: Final = 4_000_000


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """Two similar texts.

    Attributes:
        left: Number of the one text in its order, from 0.
        right: Number of the other.
        similarity: Jaccard similarity of their shingles, threshold-1.
    """

    left: int
    right: int
    similarity: float


def find_near_duplicate_pairs(texts: Iterable[str], *, threshold: float) -> Iterator[Pair]:
    """Yield every pair of similar texts once, sorted by left and right number, left before right.

    Texts are read once and not held (memory: see ``shingle_sets``). Equal texts are similar; empty ones are
    similar to nothing. The number of pairs grows with the square of a cluster's size; ``FirstsFinder`` and
    ``Components`` do not.

    Args:
        texts: In any number; they are normalised here.
        threshold: Smallest similarity, above 0 and at most 1.

    Raises:
        ValueError: The threshold is out of range.
    """
    for matches in SimilarTextIndex(texts, threshold=threshold).iterate_matches_within():
        yield from _to_pairs(matches)


class SimilarTextIndex:
    """Finds all texts of a collection that are similar to a given one; misses none.

    Memory: 8 bytes a shingle, 40 bytes a text, and about 30 bytes for each of a text's rarest shingles
    (15 % of them and one, for threshold 0.85).
    """

    def __init__(self, texts: Iterable[str], *, threshold: float) -> None:
        """Index the texts.

        Args:
            texts: Read once.
            threshold: Smallest similarity, above 0 and at most 1.

        Raises:
            ValueError: The threshold is out of range.
        """
        if not 0.0 < threshold <= 1.0:
            raise ValueError(f"threshold must be above 0 and at most 1, not {threshold}")
        collector = SetCollector()
        for batch in iterate_batches(texts):
            collector.add(batch)
        self._sets, self._order = collector.finish()
        self._threshold = threshold
        rows = np.arange(len(self._sets), dtype=np.int64)
        self._prefixes = collect_prefixes(self._sets, rows, threshold)
        self._hasher = ShingleHasher()

    def __len__(self) -> int:
        return len(self._sets)

    def find(self, texts: Iterable[str]) -> Iterator[Pair]:
        """Yield the similar pairs of given texts (left numbers, from 0) and the collection (right numbers),
        sorted. The texts are read in batches and not held.
        """
        num_before = 0
        for batch in iterate_batches(texts):
            for matches in self.iterate_matches(batch):
                for pair in _to_pairs(matches):
                    yield Pair(pair.left + num_before, pair.right, pair.similarity)
            num_before += len(batch)

    def iterate_matches(self, texts: Sequence[str]) -> Iterator[Matches]:
        """Yield the same for texts that fit into memory, as arrays; all pairs of one text are in one part."""
        sets = self._order.to_sets(*self._hasher.hash_texts(texts))
        for join in self._prepare(sets, np.arange(len(sets), dtype=np.int64)):
            yield _collect(join, EveryPair())

    def iterate_matches_within(self) -> Iterator[Matches]:
        """Yield the similar pairs of the collection itself, left before right, sorted."""
        for first in range(0, len(self._sets), _ROWS_AT_A_TIME):
            rows = np.arange(first, min(first + _ROWS_AT_A_TIME, len(self._sets)), dtype=np.int64)
            for join in self._prepare(self._sets, rows):
                yield _collect(join, EarlierLeft())

    def _prepare(self, sets: ShingleSets, rows: Numbers) -> Iterator[PreparedJoin]:
        """Yield joins of few enough candidates, so that memory does not grow with the number of pairs."""
        prefixes = collect_prefixes(sets, rows, self._threshold)
        join = PreparedJoin(sets, self._sets, prefixes, self._prefixes, threshold=self._threshold)
        if join.num_candidates <= _MAX_CANDIDATES_AT_A_TIME or len(rows) == 1:
            yield join
            return
        yield from self._prepare(sets, rows[: len(rows) // 2])
        yield from self._prepare(sets, rows[len(rows) // 2 :])


def _collect(join: PreparedJoin, wanted: PairFilter) -> Matches:
    parts = [_NO_MATCHES, *join.iterate_matches(wanted)]
    matches = Matches(
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
        np.concatenate([part.similarity for part in parts]),
    )
    return matches.choose(np.lexsort((matches.right, matches.left)))


def _to_pairs(matches: Matches) -> Iterator[Pair]:
    for left, right, similarity in zip(
        matches.left.tolist(), matches.right.tolist(), matches.similarity.tolist(), strict=True
    ):
        yield Pair(left, right, similarity)


_NO_MATCHES: Final = Matches(
    np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
)
