"""Which rows share a sequence."""

from bisect import bisect_left, insort
from collections.abc import Sequence


def pack_rows(lengths: Sequence[int], *, capacity: int) -> list[list[int]]:
    """Distribute rows over sequences: the longest first, each into the fullest sequence that has room.

    Best-fit decreasing uses at most 11/9 of the fewest possible sequences, and four
    more (Johnson, Near-optimal bin packing algorithms, 1973).

    Args:
        lengths: Tokens per row, each at most ``capacity``.
        capacity: Most tokens of a sequence.

    Returns:
        Row numbers of each sequence, ascending; sequences by their first row. Every row occurs once.

    Raises:
        ValueError: A row is longer than the capacity.
    """
    if max(lengths, default=0) > capacity:
        raise ValueError(f"a row of {max(lengths)} tokens does not fit into {capacity}")
    packs: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # (free tokens, number of the sequence), ascending
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        place = bisect_left(rooms, (lengths[row], -1))
        if place < len(rooms):
            room, pack = rooms.pop(place)
        else:
            room, pack = capacity, len(packs)
            packs.append([])
        packs[pack].append(row)
        insort(rooms, (room - lengths[row], pack))
    return sorted(sorted(pack) for pack in packs)
