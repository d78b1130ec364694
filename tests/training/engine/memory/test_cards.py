import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.errors import Fault
from training.engine.memory.cards import Card, parse_card, read_cards


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("24GB", "24 GB"),
        (" 24 gb ", "24 GB"),
        ("24", "24 GB"),
        ("40g", "40 GB"),
        ("11.5GB", "11.5 GB"),
        ("80GB x 8", "80 GB x 8"),
        ("80GBx8", "80 GB x 8"),
        ("80 GB * 8", "80 GB x 8"),
        ("8x80GB", "80 GB x 8"),
        ("8 \u00d7 80 GB", "80 GB x 8"),
        ("80GB x 1", "80 GB"),
    ],
)
def test_what_people_write(text: str, label: str) -> None:
    assert parse_card(text).label == label


def test_a_gb_is_decimal_and_a_gib_is_binary() -> None:
    assert parse_card("24GB").memory_bytes == 24_000_000_000
    assert parse_card("24GiB").memory_bytes == 24 * 2**30


@pytest.mark.parametrize(
    "text",
    [
        *("", "GB", "A100", "24TB", "-24GB", "1e2GB", "80GB x", "x 8", "80GB x 8 x 2", "80GB x 8GB"),
        *("8 x 80", "\u0662\u0664GB", "24GB x \u0668", "24 GB\u202e", "9" * 100_000, "x" * 100_000),
    ],
)
def test_what_is_no_card(text: str) -> None:
    with pytest.raises(ValueError, match="is no card"):
        parse_card(text)


@pytest.mark.parametrize("text", ["0.5GB", "0", "10001GB", "99999 GB x 2"])
def test_memory_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="below 1 GB or above"):
        parse_card(text)


@pytest.mark.parametrize("text", ["80GB x 0", "80GB x 10001"])
def test_number_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="number of cards"):
        parse_card(text)


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_a_label_reads_back(size: int, number: int) -> None:
    card = Card(memory_bytes=size * 10**9, num_cards=number)
    assert parse_card(card.label) == card


@given(st.text(max_size=60))
def test_any_text_is_a_card_or_refused(text: str) -> None:
    try:
        assert parse_card(text).num_cards >= 1
    except ValueError as error:
        assert str(error)


def test_every_bad_card_is_told_with_its_place_and_remedy() -> None:
    faults: list[Fault] = []
    cards = read_cards(["24GB", "huge\u202e", 7, "24 gb"], faults)
    assert [card.label for card in cards] == ["24 GB"]
    assert [(fault.code, fault.where) for fault in faults] == [
        ("card-unreadable", "cards[1]"),
        ("card-unreadable", "cards[2]"),
    ]
    assert all('"80GB x 8"' in fault.remedy for fault in faults)
    assert "\u202e" not in faults[0].message


def test_too_many_kinds_are_one_fault() -> None:
    faults: list[Fault] = []
    assert read_cards([f"{size}GB" for size in range(10, 20)], faults) == ()
    assert [fault.code for fault in faults] == ["too-many-cards"]
