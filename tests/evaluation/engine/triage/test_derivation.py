# ruff: noqa: RUF001 - Chinese texts have full-width marks
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.engine.triage.derivation import MAX_NUMBERS, derive_date, derive_number
from evaluation.engine.triage.quantities import Quantities, read_quantities


def given_numbers(*numbers: float, percents: tuple[float, ...] = ()) -> Quantities:
    return Quantities(numbers, (), (), percents)


@pytest.mark.parametrize(
    ("target", "numbers", "text"),
    [
        (96, (12, 8), "12 x 8 = 96"),
        (20, (12, 8), "12 + 8 = 20"),
        (25, (80, 20), "100 x 20 / 80 = 25"),
        (0.67, (2, 3), "2 / 3 = 0.67"),  # rounded to the decimals that are wanted
        (130, (10, 20, 100), "10 + 20 + 100 = 130"),
        (11, (10, 20, 3), "(10 + 20 + 3) / 3 = 11"),
        (290, (3, 50, 7, 20), "3 x 50 + 7 x 20 = 290"),
        (17, (50, 20, 13), "50 - 20 - 13 = 17"),
    ],
)
def test_relations(target: float, numbers: tuple[float, ...], text: str) -> None:
    found = derive_number(target, given_numbers(*numbers))
    assert found is not None and found.text == text


@pytest.mark.parametrize(
    ("target", "numbers", "text"),
    [
        (76, (400, 19), "400 x 19 % = 76"),
        (476, (400, 19), "400 + 19 % = 476"),
        (285.6, (3, 80, 19), "3 x 80 + 19 % = 285.6"),
    ],
)
def test_percentages_are_read_where_the_text_has_them(
    target: float, numbers: tuple[float, ...], text: str
) -> None:
    found = derive_number(target, given_numbers(*numbers, percents=(19,)))
    assert found is not None and found.text == text


def test_nothing_follows_from_nothing() -> None:
    assert derive_number(399, given_numbers()) is None
    assert derive_number(399, given_numbers(200)) is None
    assert derive_number(399, given_numbers(7, 12)) is None


def test_a_relation_that_anything_has_says_so() -> None:
    crowded = given_numbers(*(float(n) for n in range(1, 13)))
    found = derive_number(14, crowded)
    # Sums of two of 1..12 alone reach every whole number from 3 to 23, so all of 7..21 near 14.
    assert found is not None and found.chance_fraction == 1.0
    rare = derive_number(918.75, given_numbers(12.25, 75))
    assert rare is not None and rare.chance_fraction < 0.01


def test_dates() -> None:
    given = Quantities((30.0, 2.0), (date(2024, 2, 15),), ())
    found = derive_date(date(2024, 3, 16), given)  # 14 days left of February 2024, 16 of March
    assert found is not None and found.text == "2024-02-15 + 30 days = 2024-03-16"
    assert derive_date(date(2024, 2, 1), given) is not None  # two weeks before
    assert derive_date(date(2030, 1, 1), given) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(2, 500), min_size=2, max_size=MAX_NUMBERS, unique=True),
    st.sampled_from(["+", "x", "-"]),
)
def test_every_pair_is_found(numbers: list[int], sign: str) -> None:
    a, b = numbers[0], numbers[-1]
    target = {"+": a + b, "x": a * b, "-": a - b}[sign]
    found = derive_number(float(target), given_numbers(*map(float, numbers)))
    assert found is not None and 0 <= found.chance_fraction <= 1


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,234.50 and 7", (1234.5, 7)),
        ("VAT 19 %, discount 5%", (19, 5)),
        ("about 3万 and 1.5亿", (30000, 150_000_000)),
        ("part A1234, version v2, key x_3", ()),
        ("from -5 to 10-12", (-5, 10, 12)),
        ("twelve boxes, three days", (12, 3)),
        ("三箱，每箱四十五元", (3,)),
        ("两件，十五天", (2, 15)),
        ("第三天，星期三", ()),
        ("４５元", (45,)),
        ("2 million", (2_000_000,)),
    ],
)
def test_numbers(text: str, numbers: tuple[float, ...]) -> None:
    assert read_quantities(text).numbers == numbers


@pytest.mark.parametrize(
    "text",
    ["2024-05-01", "2024/5/1", "2024年5月1日", "May 1, 2024", "1 May 2024", "1st of it: 2024.05.01"],
)
def test_dates_are_read_in_every_spelling(text: str) -> None:
    assert read_quantities(text).dates == (date(2024, 5, 1),)


def test_an_impossible_date_is_no_date() -> None:
    assert read_quantities("2024-13-45").dates == ()


def test_times() -> None:
    assert read_quantities("9:15 to 11:00, ratio 3:2").minutes == (555, 660)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    quantities = read_quantities(text)
    assert len(set(quantities.numbers)) == len(quantities.numbers)


def test_percents_are_known_as_such() -> None:
    assert read_quantities("400 plus 19 % and 5 percent").percents == (19, 5)
