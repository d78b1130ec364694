# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from training.engine.data.cleaning.normalising.dates import write_dates_as_iso


@pytest.mark.parametrize(
    "text",
    [
        *("2024年3月5日", "2024 年 03 月 05 日", "2024年3月5号", "2024/3/5", "2024.03.05", "2024-3-5"),
        *("March 5, 2024", "Mar. 5 2024", "5 March 2024", "5th of March 2024", "MARCH 5th, 2024"),
    ],
)
def test_one_day_in_many_forms(text: str) -> None:
    assert write_dates_as_iso(text).text == "2024-03-05"
    assert write_dates_as_iso(f"于{text}，好").text == "于2024-03-05，好"
    assert write_dates_as_iso("2024-03-05").text == "2024-03-05"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024年3月5日10:30开会", "2024-03-05 10:30开会"),
        ("13/04/2024 or 04/13/2024 or 05/05/2024", "2024-04-13 or 2024-04-13 or 2024-05-05"),
        ("2024年2月29日", "2024-02-29"),
        ("from 5 March 2024 to 7 March 2024", "from 2024-03-05 to 2024-03-07"),
        ("2024年3月5日至2024年3月7日", "2024-03-05至2024-03-07"),
        ("March 5, 2024, 10 AM", "2024-03-05, 10 AM"),
    ],
)
def test_sentences(text: str, expected: str) -> None:
    assert write_dates_as_iso(text).text == expected


@pytest.mark.parametrize(
    ("text", "flag", "words"),
    [
        ("on 03/04/2024.", "ambiguous-date", "03/04/2024"),
        ("PyCharm 2024.1.4", "ambiguous-date", "2024.1.4"),
        ("2023年2月29日", "invalid-date", "2023年2月29日"),
        ("February 30, 2024", "invalid-date", "February 30, 2024"),
        ("31/02/2024", "invalid-date", "31/02/2024"),
        ("2024年3月5日至7日", "date-range", "2024年3月5日"),
        ("2024/3/5~7", "date-range", "2024/3/5"),
        ("5 and 7 March 2024", "date-range", "7 March 2024"),
    ],
)
def test_what_is_not_sure_is_flagged_and_stays(text: str, flag: str, words: str) -> None:
    treated = write_dates_as_iso(text)
    assert treated.text == text
    assert treated.flags == ((flag, words),)


def test_order_of_day_and_month_is_told() -> None:
    assert write_dates_as_iso("03/04/2024", day_first=True).text == "2024-04-03"
    assert write_dates_as_iso("03/04/2024", day_first=False).text == "2024-03-04"
    # Only one reading is left for this one.
    assert write_dates_as_iso("04/13/2024", day_first=True).text == "2024-04-13"


@pytest.mark.parametrize(
    "text",
    [
        *("192.168.20.24", "1.2.2024.5", "v1.2.2024", "3月5日", "March 2024", "2024年3月", "March 5-7, 2024"),
        *("农历2024年3月5日", "SN-2024/3/5", "2024/13/45", "May I ask 5 questions", "2024-03-05T10:00"),
    ],
)
def test_no_dates(text: str) -> None:
    assert write_dates_as_iso(text).text == text
    assert write_dates_as_iso(text).flags == ()
