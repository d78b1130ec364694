from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.intake.ids import MAX_ID_CHARS, UsedIds, make_id, make_stem


def test_made_ids() -> None:
    assert make_id("tickets", 17) == "tickets-0000017"
    assert make_stem("zh/工单") == "zh-工单"
    assert make_stem("a\u202eb\n") == "a_b_"
    assert make_stem("") == "row"


def test_long_and_shared_stems_stay_apart_and_short() -> None:
    left, right = make_stem("x" * 200 + "1"), make_stem("x" * 200 + "2")
    assert left != right
    assert len(make_id(left, 10**15)) <= MAX_ID_CHARS
    assert make_stem("a/b.csv", is_shared=True) != make_stem("a-b.csv", is_shared=True)


def test_first_place_of_an_id() -> None:
    used = UsedIds()
    assert used.add("a", 0, 1) is None
    assert used.add("b", 0, 2) is None
    assert used.add("a", 3, 9) == (0, 1)
    assert used.add("a", 3, 10) == (0, 1)
    assert used.add("", 1, 1 << 33) is None
    assert used.add("", 2, 2) == (1, 1 << 33)


@given(st.lists(st.text(max_size=2)))
def test_same_answers_as_a_dictionary(names: list[str]) -> None:
    used, known = UsedIds(), dict[str, tuple[int, int]]()
    for row, name in enumerate(names, start=1):
        assert used.add(name, 0, row) == known.get(name)
        known.setdefault(name, (0, row))


def test_answers_stay_when_the_table_grows() -> None:
    used = UsedIds()
    # Beyond 2 * 4096 * 0.6 ids the table has grown twice.
    assert all(used.add(str(number), 0, number) is None for number in range(1, 6001))
    assert [used.add(str(number), 1, 1) for number in (1, 3000, 6000)] == [(0, 1), (0, 3000), (0, 6000)]
