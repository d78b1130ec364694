import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.packing.plan import pack_rows


@given(st.lists(st.integers(1, 100), max_size=200))
def test_every_row_once_and_nothing_too_long(lengths: list[int]) -> None:
    packs = pack_rows(lengths, capacity=100)
    assert sorted(row for pack in packs for row in pack) == list(range(len(lengths)))
    assert all(sum(lengths[row] for row in pack) <= 100 for pack in packs)
    assert packs == sorted(sorted(pack) for pack in packs)
    # No packing has fewer than the tokens ask for; any-fit packing never leaves two sequences half empty.
    fewest = -(-sum(lengths) // 100)
    assert fewest <= len(packs) <= max(1, 2 * fewest)


def test_the_fullest_sequence_with_room_is_taken() -> None:
    """By hand, capacity 10: 7 opens A, 6 opens B, 4 fills B, 3 fills A, 2 and 1 open C."""
    assert pack_rows([4, 7, 3, 6, 2, 1], capacity=10) == [[0, 3], [1, 2], [4, 5]]


def test_a_row_beyond_the_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="11 tokens does not fit into 10"):
        pack_rows([3, 11], capacity=10)
    assert pack_rows([], capacity=10) == []
