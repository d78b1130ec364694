"""Many texts as sets of integer shingles in one array. No texts are held.

A shingle is a 64-bit hash that does not depend on the process (BLAKE2b of words, mixed over the run as in
splitmix64: Steele et al., "Fast splittable pseudorandom number generators", 2014), of which 58 bits are kept
beside 6 bits that say how frequent it is. Two given texts of 1,000 shingles each share a false one with
probability 1000^2 / 2^58 < 4e-12.

Memory: 8 bytes a shingle and 40 bytes a text; while they are made, twice that, and up to 300 MB for 4 million
shingles at a time and the table of frequencies.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from training.engine.data.shingles import (
    CHARACTERS_PER_SHINGLE,
    WORDS_PER_SHINGLE,
    TextUnits,
    normalise,
    split_units,
)

Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]

_NO_KEYS: Final = np.zeros(0, dtype=np.uint64)
_NO_NUMBERS: Final = np.zeros(0, dtype=np.int64)

SKETCH_WORDS: Final = 4
BATCH_TEXTS: Final = 2048
BATCH_CHARACTERS: Final = 2_000_000
_SHINGLES_AT_A_TIME: Final = 4_000_000
_MAX_KNOWN_WORDS: Final = 1_000_000
_WORDS_SALT: Final = 0x9E3779B97F4A7C15
_LETTERS_SALT: Final = 0xC2B2AE3D27D4EB4F
_CLASS_BITS: Final = 6
_MAX_TABLE_BITS: Final = 22
_STEPS_PER_DOUBLING: Final = 4


@dataclass(frozen=True, slots=True)
class ShingleSets:
    """Sets of shingles, one after the other.

    Attributes:
        keys: [num_shingles], of each set ascending and each once; the rare ones come first.
        starts: [num_sets + 1], where each set begins in ``keys``; the last is the end.
        sketches: [num_sets, 4], 256 bits, each the parity of the shingles that fall on it: two sketches
            differ in at most as many bits as the sets differ in shingles.
    """

    keys: Keys
    starts: Numbers
    sketches: Keys

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Numbers:
        """Shingles of each set: [num_sets]."""
        return self.starts[1:] - self.starts[:-1]

    def sizes_of(self, rows: Numbers) -> Numbers:
        """Shingles of some sets: [num_rows]."""
        return self.starts[rows + 1] - self.starts[rows]


class _WordHashes(dict[str, int]):
    """Hashes of words, each computed once; the empty word fills short texts up."""

    def __init__(self) -> None:
        super().__init__({"": 0})

    def __missing__(self, word: str) -> int:
        value = self[word] = hash_text(word)
        return value


class ShingleHasher:
    """Turns texts into hashes of shingles; remembers up to a million words."""

    def __init__(self) -> None:
        self._word_hashes = _WordHashes()

    def hash_texts(self, texts: Sequence[str]) -> tuple[Keys, Numbers]:
        """Return all hashes, repeats within a text included, and how many each text has.

        Args:
            texts: As they are; they are normalised here.
        """
        units = [split_units(normalise(text)) for text in texts]
        parts = [self._hash_words(units), _hash_letters(units), _hash_marks(units)]
        hashes = np.concatenate([part[0] for part in parts])
        owners = np.concatenate([part[1] for part in parts])
        order = np.argsort(owners, kind="stable")
        return hashes[order], np.bincount(owners, minlength=len(texts)).astype(np.int64)

    def _hash_words(self, units: Sequence[TextUnits]) -> tuple[Keys, Numbers]:
        rows = [row for row, item in enumerate(units) if item.words]
        if len(self._word_hashes) > _MAX_KNOWN_WORDS:
            self._word_hashes = _WordHashes()
        lengths = np.array([max(len(units[row].words), WORDS_PER_SHINGLE) for row in rows], dtype=np.int64)
        words = chain.from_iterable(_fill_up(units[row].words) for row in rows)
        flat = np.fromiter(map(self._word_hashes.__getitem__, words), dtype=np.uint64)
        return _hash_runs(flat, lengths, np.array(rows, dtype=np.int64), WORDS_PER_SHINGLE, _WORDS_SALT)


def hash_text(text: str) -> int:
    """Return a 64-bit number for a text, the same in every process."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def iterate_batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts in batches of at most 2048 texts and about 2 million characters."""
    batch: list[str] = []
    num_characters = 0
    for text in texts:
        batch.append(text)
        num_characters += len(text)
        if len(batch) >= BATCH_TEXTS or num_characters >= BATCH_CHARACTERS:
            yield batch
            batch, num_characters = [], 0
    if batch:
        yield batch


class RarityOrder:
    """One fixed order of all shingles, about from rare to frequent.

    Any fixed order is right for prefix filtering; one by frequency is fast. So frequencies are counted in a
    table of buckets that shingles may share, and rounded to quarters of a doubling.
    """

    def __init__(self, hashes: Keys) -> None:
        bits = min(_MAX_TABLE_BITS, max(10, len(hashes).bit_length()))
        self._mask = np.uint64((1 << bits) - 1)
        counts = np.zeros(1 << bits, dtype=np.int64)
        for begin in range(0, len(hashes), 1 << _MAX_TABLE_BITS):
            buckets = (hashes[begin : begin + (1 << _MAX_TABLE_BITS)] & self._mask).astype(np.int64)
            counts += np.bincount(buckets, minlength=1 << bits)
        classes = np.floor(_STEPS_PER_DOUBLING * np.log2(counts + 1.0))
        self._classes = np.minimum(classes, (1 << _CLASS_BITS) - 1).astype(np.uint8)

    def to_keys(self, hashes: Keys) -> Keys:
        """Return the numbers that stand for the shingles in sets: their order is the order."""
        classes = self._classes[(hashes & self._mask).astype(np.int64)].astype(np.uint64)
        return np.asarray((classes << np.uint64(64 - _CLASS_BITS)) | (hashes >> np.uint64(_CLASS_BITS)))

    def to_sets(self, hashes: Keys, sizes: Numbers) -> ShingleSets:
        """Return the sets of texts whose hashes stand one after the other; sizes: [num_texts]."""
        ends = np.concatenate([[0], np.cumsum(sizes)])
        parts = [
            self._to_sets(hashes[ends[rows.start] : ends[rows.stop]], sizes[rows])
            for rows in split_by_total(sizes, _SHINGLES_AT_A_TIME)
        ]
        if len(parts) == 1:
            return parts[0]
        all_sizes = np.concatenate([_NO_NUMBERS, *(part.sizes for part in parts)])
        return ShingleSets(
            keys=np.concatenate([_NO_KEYS, *(part.keys for part in parts)]),
            starts=np.concatenate([[0], np.cumsum(all_sizes)]).astype(np.int64),
            sketches=np.concatenate([_NO_KEYS.reshape(0, SKETCH_WORDS), *(part.sketches for part in parts)]),
        )

    def _to_sets(self, hashes: Keys, sizes: Numbers) -> ShingleSets:
        keys, owners = self.to_keys(hashes), np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((keys, owners))
        keys, owners = keys[order], owners[order]
        is_first = np.ones(len(keys), dtype=bool)
        is_first[1:] = (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1])
        keys, owners = keys[is_first], owners[is_first]
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(sizes)))]).astype(np.int64)
        return ShingleSets(keys=keys, starts=starts, sketches=_make_sketches(keys, starts))


class SetCollector:
    """Collects texts one batch after the other and gives their sets when all are there."""

    def __init__(self) -> None:
        self._hasher = ShingleHasher()
        self._chunks: list[Keys] = []
        self._sizes: list[Numbers] = []

    def add(self, texts: Sequence[str]) -> None:
        """Take some texts."""
        hashes, sizes = self._hasher.hash_texts(texts)
        self._chunks.append(hashes)
        self._sizes.append(sizes)

    def finish(self) -> tuple[ShingleSets, RarityOrder]:
        """Return the sets of all texts in their order, and the order of the shingles; the collector is empty
        afterwards.
        """
        sizes = np.concatenate([_NO_NUMBERS, *self._sizes])
        hashes = np.concatenate([_NO_KEYS, *self._chunks])
        self._chunks, self._sizes = [], []
        order = RarityOrder(hashes)
        return order.to_sets(hashes, sizes), order


def collect_sets(texts: Iterable[str]) -> ShingleSets:
    """Return the sets of all texts."""
    collector = SetCollector()
    for batch in iterate_batches(texts):
        collector.add(batch)
    return collector.finish()[0]


def _fill_up(words: tuple[str, ...]) -> tuple[str, ...]:
    return words + ("",) * (WORDS_PER_SHINGLE - len(words))


def _hash_letters(units: Sequence[TextUnits]) -> tuple[Keys, Numbers]:
    rows = [row for row, item in enumerate(units) if item.letters]
    # A NUL is no letter, so the filled-up short texts equal no other text.
    letters = [units[row].letters.ljust(CHARACTERS_PER_SHINGLE, "\0") for row in rows]
    flat = np.frombuffer("".join(letters).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    lengths = np.array([len(item) for item in letters], dtype=np.int64)
    return _hash_runs(flat, lengths, np.array(rows, dtype=np.int64), CHARACTERS_PER_SHINGLE, _LETTERS_SALT)


def _hash_marks(units: Sequence[TextUnits]) -> tuple[Keys, Numbers]:
    rows = [row for row, item in enumerate(units) if item.marks]
    hashes = [hash_text(units[row].marks) for row in rows]
    return np.array(hashes, dtype=np.uint64), np.array(rows, dtype=np.int64)


def _hash_runs(flat: Keys, lengths: Numbers, rows: Numbers, width: int, salt: int) -> tuple[Keys, Numbers]:
    """Hash every run of ``width`` units within each text; all lengths are at least the width."""
    num_runs = lengths - width + 1
    begins = np.cumsum(lengths) - lengths
    starts = spread(begins, num_runs)
    hashes = np.full(len(starts), salt, dtype=np.uint64)
    for place in range(width):
        hashes = _mix(hashes + flat[starts + place])
    return hashes, np.repeat(rows, num_runs)


def split_by_total(sizes: Numbers, limit: int) -> list[slice]:
    """Cut a list of sizes into runs of together about ``limit``; one greater size ends its run."""
    if not len(sizes):
        return []
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // limit)) + 1
    return [slice(first, end) for first, end in pairwise([0, *cuts.tolist(), len(sizes)])]


def spread(begins: Numbers, counts: Numbers) -> Numbers:
    """Return begin, begin + 1, ... begin + count - 1 for each pair, one after the other."""
    before = np.cumsum(counts) - counts
    return np.asarray(np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(begins - before, counts))


def _mix(values: Keys) -> Keys:
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _make_sketches(keys: Keys, starts: Numbers) -> Keys:
    sketches = np.zeros((len(starts) - 1, SKETCH_WORDS), dtype=np.uint64)
    is_filled = starts[1:] > starts[:-1]
    bits = np.uint64(1) << (keys & np.uint64(63))
    words = (keys >> np.uint64(6)) % np.uint64(SKETCH_WORDS)
    for word in range(SKETCH_WORDS if len(keys) else 0):
        chosen = np.where(words == word, bits, np.uint64(0))
        # reduceat takes no empty runs.
        sketches[is_filled, word] = np.bitwise_xor.reduceat(chosen, starts[:-1][is_filled])
    return sketches
