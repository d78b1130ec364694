# ruff: noqa: RUF001 (full-width marks are what is tested)
from collections.abc import Callable, Iterator

import pytest

from training.engine.data.cleaning.sensitive.identity import (
    find_chinese_ids,
    find_national_ids,
    find_social_security_numbers,
    find_tax_numbers,
)
from training.engine.data.cleaning.sensitive.kinds import SensitiveSpan

Find = Callable[[str], Iterator[SensitiveSpan]]


def values(find: Find, text: str) -> list[str]:
    return [span.value for span in find(text) if not span.is_reserved]


# 360426199101010071 stands in python-stdnum's documentation of the resident identity card number.
@pytest.mark.parametrize(
    "text", ["身份证360426199101010071，", "360426 19910101 0071", "360426-19910101-0071"]
)
def test_chinese_ids(text: str) -> None:
    assert values(find_chinese_ids, text) == ["360426199101010071"]


@pytest.mark.parametrize(
    "text",
    [
        "360426199101010072",  # check digit
        "360426199113010077",  # no thirteenth month
        "990426199101010071",  # no such province
        "3604261991010100710",  # a longer number
        "A360426199101010071",
    ],
)
def test_other_long_numbers(text: str) -> None:
    assert values(find_chinese_ids, text) == []


def test_check_sign_x_and_the_example_of_the_standard() -> None:
    # GB 11643-1999 shows 11010519491231002X.
    assert [(span.value, span.is_reserved) for span in find_chinese_ids("11010519491231002x")] == [
        ("11010519491231002X", True)
    ]


def test_fifteen_digits_need_the_word() -> None:
    assert values(find_chinese_ids, "身份证号：360426910101007") == ["360426910101007"]
    assert values(find_chinese_ids, "流水 360426910101007") == []


def test_social_security_numbers() -> None:
    assert values(find_social_security_numbers, "it is 536-22-1234.") == ["536221234"]
    assert values(find_social_security_numbers, "my SSN: 536221234") == ["536221234"]
    for text in ("000-22-1234", "666-22-1234", "900-22-1234", "536-00-1234", "536-22-0000", "536221234"):
        assert values(find_social_security_numbers, text) == []
    assert values(find_social_security_numbers, "078-05-1120 123-45-6789") == []


# All out of the documentation of python-stdnum, which validates them.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 95 10 99 126 111 93", "295109912611193"),
        ("CF RCCMNL83S18D969H", "RCCMNL83S18D969H"),
        ("Steuer-ID 36 574 261 809", "36574261809"),
        ("DNI: 54362315-K", "54362315K"),
        ("National Insurance number JG 10 37 59 A", "JG103759A"),
    ],
)
def test_european_ids(text: str, value: str) -> None:
    assert values(find_national_ids, text) == [value]


@pytest.mark.parametrize(
    "text", ["2 95 10 99 126 111 94", "RCCMNL83S18D969I", "36574261809", "code 54362315K", "JG103759A"]
)
def test_weak_checksums_need_the_name(text: str) -> None:
    assert values(find_national_ids, text) == []


def test_tax_numbers() -> None:
    assert values(find_tax_numbers, "USt-IdNr. DE136695976") == ["DE136695976"]
    assert values(find_tax_numbers, "统一社会信用代码：91110000600037341L") == ["91110000600037341L"]
    assert values(find_tax_numbers, "DE136695976 91110000600037341L") == []
    assert values(find_tax_numbers, "VAT DE136695977") == []
