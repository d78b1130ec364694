# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from training.engine.data.cleaning.sensitive.folding import fold
from training.engine.data.cleaning.sensitive.phones import find_phones

REGIONS = ("CN", "US", "GB", "DE")


def find(text: str, regions: tuple[str, ...] = REGIONS) -> list[tuple[str, str]]:
    return [
        (text[span.start : span.end], span.value)
        for span in find_phones(fold(text), regions)
        if not span.is_reserved
    ]


# The value is the national number without its trunk zero.
@pytest.mark.parametrize(
    ("text", "number", "value"),
    [
        ("我的手机是13912345678。", "13912345678", "13912345678"),
        ("138-1234-5678", "138-1234-5678", "13812345678"),
        ("请拨打 139 1234 5678", "139 1234 5678", "13912345678"),
        ("手机１３９１２３４５６７８", "１３９１２３４５６７８", "13912345678"),
        ("1 3 9 1 2 3 4 5 6 7 8", "1 3 9 1 2 3 4 5 6 7 8", "13912345678"),
        ("139\u200b1234\u200b5678", "139\u200b1234\u200b5678", "13912345678"),
        ("+86 139 1234 5678", "+86 139 1234 5678", "13912345678"),
        ("008613912345678", "008613912345678", "13912345678"),
        ("010-62512345", "010-62512345", "1062512345"),
        ("(010) 62512345", "(010) 62512345", "1062512345"),
        ("010-62512345-801", "010-62512345", "1062512345"),
        ("0755 8612 3456", "0755 8612 3456", "75586123456"),
        ("202-456-1111", "202-456-1111", "2024561111"),
        ("(202) 456-1111", "(202) 456-1111", "2024561111"),
        ("202.456.1111", "202.456.1111", "2024561111"),
        ("please call 2024561111 now", "2024561111", "2024561111"),
        ("020 7123 4567", "020 7123 4567", "2071234567"),
        ("07911123456", "07911123456", "7911123456"),
        ("0171/1234567", "0171/1234567", "1711234567"),
        ("089-1234567", "089-1234567", "891234567"),
        ("+33 6 12 34 56 78", "+33 6 12 34 56 78", "612345678"),
        ("Room 12 13912345678", "13912345678", "13912345678"),
        ("订单 13812345678，电话 13912345679", "13912345679", "13912345679"),
        ("tel: 62512345", "62512345", "62512345"),
    ],
)
def test_numbers_as_people_write_them(text: str, number: str, value: str) -> None:
    assert find(text) == [(number, value)]


@pytest.mark.parametrize(
    "text",
    [
        "订单号13912345678已发货",
        "运单号：139123456781234",
        "order 2024561111",
        "invoice no. 202-456-1111",
        "2024561111",
        "202 456 1111",
        "3.13912345678",
        "SN13912345678X",
        "13912345678元",
        "$13912345678",
        "id=13912345678",
        "https://shop.test/item/13912345678",
        "139123456789012345678",
        "13912345678-01",
        "2024-01-15 10:30",
        "20240115103000",
        "call me on 2024-01-15",
        "05.11.2023",
        "05/11/2023",
        "192.168.1.100",
        "4111 1111 1111 1111",
        "ISBN 978-3-16-148410-0",
        "112-1234567-7654321",
        "1 2 3 4 5 6 7 8 9 10 11 12",
        "1700000000 1700000000123",
        "1 3 5 7 9 11 13 15",
    ],
)
def test_other_numbers(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "202-555-0143",  # NANPA: 555-0100 to 555-0199 are for fiction
        "call 555 0163",
        "020 7946 0018",  # Ofcom's numbers for drama
        "030 23125 123",  # Bundesnetzagentur, Mitteilung 148/2021
        "800-588-2300",  # toll-free: a company
        "13800138000",  # China Mobile's line for top-ups
    ],
)
def test_fiction_and_public_services_are_reserved(text: str) -> None:
    assert [span.is_reserved for span in find_phones(text, REGIONS)] == [True]


def test_regions_decide_on_national_numbers() -> None:
    assert find("07911 123456", ("CN",)) == []
    assert find("13912345678", ("GB",)) == []
    assert find("+86 13912345678", ("GB",)) == [("+86 13912345678", "13912345678")]


def test_two_numbers_side_by_side() -> None:
    assert find("13912345678 13612345678") == [
        ("13912345678", "13912345678"),
        ("13612345678", "13612345678"),
    ]
