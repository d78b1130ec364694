"""Ids of examples: made where there are none, and a bounded memory of those already used."""

import hashlib
import struct
from array import array

MAX_ID_CHARS = 128
"""The registry's limit for ids."""

_MAX_STEM_CHARS = 96
_MAX_FILLED_FRACTION = 0.6
_ROW_BITS = 40


def make_id(stem: str, row: int) -> str:
    """Return the id of a row without one: the same for the same file name and row, always.

    Args:
        stem: See ``make_stem``.
        row: 1-based number of the record.
    """
    return f"{stem}-{row:07d}"


def make_stem(name: str, *, is_shared: bool = False) -> str:
    """Return the beginning of made ids out of a file's relative name.

    Folders are joined by "-", unprintable characters become "_", and a long name is cut.

    Args:
        name: Relative name, usually without its ending.
        is_shared: Whether other files would get the same; then, and when the name is cut, a digest of all of
            it is added.
    """
    plain = "".join(character if character.isprintable() else "_" for character in name.replace("/", "-"))
    if len(plain) <= _MAX_STEM_CHARS and not is_shared:
        return plain or "row"
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{plain[: _MAX_STEM_CHARS - 13]}-{digest}"


class UsedIds:
    """Remembers which ids were used, and where first.

    An id is held as 16 bytes of BLAKE2b and 8 bytes of place, in flat arrays: 40 to 80 bytes for each id, 50
    MB for a million. No text is held. Two different ids would be taken for one only if their digests agreed,
    which for n ids has a probability below n^2 / 2^129: 4e-26 for five million.
    """

    def __init__(self) -> None:
        self._num_used = 0
        self._allocate(1 << 12)

    def add(self, example_id: str, file: int, row: int) -> tuple[int, int] | None:
        """Remember an id.

        Args:
            example_id: The id.
            file: Number of the file, from 0.
            row: Number of the record, from 1.

        Returns:
            None when it is new, else (file, row) where it was used first.
        """
        digest = hashlib.blake2b(example_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        high, low = struct.unpack("=QQ", digest)
        slot = self._find(high, low)
        if self._places[slot]:
            place = self._places[slot]
            return place >> _ROW_BITS, place & ((1 << _ROW_BITS) - 1)
        self._set(slot, high, low, (file << _ROW_BITS) | row)
        self._num_used += 1
        if self._num_used > _MAX_FILLED_FRACTION * len(self._places):
            self._grow()
        return None

    def _allocate(self, num_slots: int) -> None:
        self._mask = num_slots - 1
        self._highs = array("Q", bytes(8 * num_slots))
        self._lows = array("Q", bytes(8 * num_slots))
        # Rows count from 1, so that 0 means a free slot.
        self._places = array("Q", bytes(8 * num_slots))

    def _find(self, high: int, low: int) -> int:
        """Return the slot of the digest, or the free slot where it belongs."""
        slot = low & self._mask
        places, lows, highs = self._places, self._lows, self._highs
        while places[slot] and (lows[slot] != low or highs[slot] != high):
            slot = (slot + 1) & self._mask
        return slot

    def _set(self, slot: int, high: int, low: int, place: int) -> None:
        self._highs[slot], self._lows[slot], self._places[slot] = high, low, place

    def _grow(self) -> None:
        old = zip(self._highs, self._lows, self._places, strict=True)
        self._allocate(2 * (self._mask + 1))
        for high, low, place in old:
            if place:
                self._set(self._find(high, low), high, low, place)
