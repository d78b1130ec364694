"""Quarters are those of UTC; their borders belong to the quarter that begins."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from training.errors import TrainingInvalid
from training.selectors.quarters import Quarter, parse_quarter, quarter_of


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("2026Q1", (2026, 1, 1), (2026, 4, 1)),
        ("2026q2", (2026, 4, 1), (2026, 7, 1)),
        ("2026Q3", (2026, 7, 1), (2026, 10, 1)),
        ("2026Q4", (2026, 10, 1), (2027, 1, 1)),
    ],
)
def test_borders(text: str, begins: tuple[int, int, int], ends: tuple[int, int, int]) -> None:
    quarter = parse_quarter(text)
    assert (quarter.begins_at, quarter.ends_at) == (
        datetime(*begins, tzinfo=UTC),
        datetime(*ends, tzinfo=UTC),
    )
    assert quarter_of(quarter.begins_at) == quarter
    assert quarter_of(quarter.ends_at - timedelta(microseconds=1)) == quarter
    assert quarter_of(quarter.ends_at) == quarter.following
    assert quarter.following.preceding == quarter
    assert str(quarter) == text.upper()


def test_other_time_zones() -> None:
    # 08:30 on the first of January in Shanghai is 00:30 UTC; 07:30 is still the old year.
    shanghai = timezone(timedelta(hours=8))
    assert quarter_of(datetime(2027, 1, 1, 8, 30, tzinfo=shanghai)) == Quarter(year=2027, number=1)
    assert quarter_of(datetime(2027, 1, 1, 7, 30, tzinfo=shanghai)) == Quarter(year=2026, number=4)


@pytest.mark.parametrize(
    "text", ["", "2026", "2026Q0", "2026Q5", "26Q1", "2026-Q1", "2026Q1 ", "\uff12026Q1", "9999Q4"]
)
def test_what_is_no_quarter(text: str) -> None:
    with pytest.raises(TrainingInvalid):
        parse_quarter(text)
