# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from training.engine.data.checks.value_forms import fold_spelling, read_amount_form, read_date_form


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("2024-01-05", "2024-01-05"),
        ("2024-1-5", "2024-1-5"),
        ("2023/12/31", "2024/01/05"),
        ("20231231", "20240105"),
        ("2023年12月31日", "2024年1月5日"),
        ("31.12.2023", "05.01.2024"),
        ("March 3, 2023", "January 5, 2024"),
        ("3 Mar 2023", "5 January 2024"),
        ("2024-01-05T10:00:00Z", "2024-01-05 with T time"),
        ("2024-01-05 10:00", "2024-01-05 with a time"),
        ("20241331", None),
        ("next Friday", None),
        ("2024-01-05 or so", None),
    ],
)
def test_dates(value: str, form: str | None) -> None:
    assert read_date_form(value) == form


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("7kg", ("kg", "10kg")),
        ("7 公斤", ("kg", "10 公斤")),
        ("7", ("", "10")),
        ("-1,234.5", ("", "10")),
        ("¥100", ("cny", "¥10")),
        ("100元", ("cny", "10元")),
        ("$ 5", ("usd", "$ 10")),
        ("50%", ("%", "10%")),
        ("seven", None),
        ("7 of 9", None),
    ],
)
def test_amounts(value: str, form: tuple[str, str] | None) -> None:
    assert read_amount_form(value) == form


def test_spellings_of_one_value_fold_alike() -> None:
    assert (
        len({fold_spelling(text) for text in ("data loss", "Data_Loss", "data-loss", "ＤＡＴＡ loss")}) == 1
    )
    assert fold_spelling("high") != fold_spelling("higher")
