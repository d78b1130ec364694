# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from training.engine.data.cleaning.sensitive.folding import fold
from training.engine.data.cleaning.sensitive.keyword_context import find_passports, find_plates


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("护照号：E12345678", "E12345678"),
        ("护照号码为 EA1234567。", "EA1234567"),
        ("My passport number is 123456789.", "123456789"),
        ("Reisepass C01X00T47", "C01X00T47"),
    ],
)
def test_passports(text: str, value: str) -> None:
    assert [span.value for span in find_passports(fold(text))] == [value]


@pytest.mark.parametrize(
    "text", ["E12345678", "my passport expired 20240101", "护照已过期", "passport PLEASEHELP"]
)
def test_no_passports(text: str) -> None:
    assert list(find_passports(text)) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("车牌京A12345停在门口", "京A12345"),
        ("车牌号：粤B·D12345", "粤BD12345"),
        ("License plate: 7ABC123", "7ABC123"),
        ("Kennzeichen B-AB 1234", "BAB1234"),
    ],
)
def test_plates(text: str, value: str) -> None:
    assert [span.value for span in find_plates(fold(text))] == [value]


@pytest.mark.parametrize("text", ["京A12345", "7ABC123", "number plate is missing", "license plate NONE"])
def test_no_plates(text: str) -> None:
    assert list(find_plates(text)) == []
