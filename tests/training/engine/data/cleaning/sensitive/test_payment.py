# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from training.engine.data.cleaning.sensitive.payment import find_cards, find_ibans


def cards(text: str) -> list[str]:
    return [span.value for span in find_cards(text) if not span.is_reserved]


# Luhn by hand for 4532015112830366: doubled digits from the right 6 6 .. give the sum 50.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4532015112830366", "4532015112830366"),
        ("my card 4532 0151 1283 0366, thanks", "4532015112830366"),
        ("4532-0151-1283-0366", "4532015112830366"),
        ("银行卡号：6222 0212 3456 7890 128", "6222021234567890128"),
        ("卡号6222021234567890128开户", "6222021234567890128"),
        ("amex 3782 822463 10013", "378282246310013"),
    ],
)
def test_cards(text: str, value: str) -> None:
    assert cards(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        "4532015112830367",  # Luhn
        "order 4532015112830366",
        "订单号：4532015112830366",
        "9532015112830361",  # no issuer
        "45320151128303660000000",
        "0.4532015112830366",
        "4006381333931",  # a barcode passes Luhn one time in ten
        "453 201 511 283 036 6",
    ],
)
def test_other_numbers(text: str) -> None:
    assert cards(text) == []


def test_test_numbers_of_processors_are_reserved() -> None:
    assert [span.is_reserved for span in find_cards("4242 4242 4242 4242")] == [True]


# GR16… and GB94… are the examples of python-stdnum and of the ECBS.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("IBAN: GR16 0110 1050 0000 1054 7023 795 please", "GR1601101050000010547023795"),
        ("GB94BARC10201530093459.", "GB94BARC10201530093459"),
        ("iban de75512108001245126199 ok", "DE75512108001245126199"),
    ],
)
def test_ibans(text: str, value: str) -> None:
    assert [(span.value, span.is_reserved) for span in find_ibans(text)] == [(value, False)]


@pytest.mark.parametrize(
    "text", ["GB95BARC10201530093459", "GB94BARC1020153009345", "XX94BARC10201530093459"]
)
def test_wrong_ibans(text: str) -> None:
    assert list(find_ibans(text)) == []


def test_registry_examples_are_reserved() -> None:
    assert [span.is_reserved for span in find_ibans("DE89 3704 0044 0532 0130 00")] == [True]
