"""Numbers, dates and times of day that stand in a text, in English and Chinese spelling.

Digits that are part of a word (``A1234``, ``v2``) are no quantities. Dates and times are read first, so that
their parts are not taken for numbers.
"""

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from evaluation.engine.scoring.fields import NORMALISERS

MAX_TEXT_CHARACTERS: Final = 50_000
"""Longer texts are read up to here."""

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
    )
}
_MONTH: Final = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_YEAR_FIRST: Final = re.compile(
    r"(?<!\d)(\d{4})\s*(?:[-/.]|\u5e74)\s*(\d{1,2})\s*(?:[-/.]|\u6708)\s*(\d{1,2})(?!\d)\s*[\u65e5\u53f7]?"
)
_MONTH_FIRST: Final = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b", re.IGNORECASE)
_DAY_FIRST: Final = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+{_MONTH},?\s+(\d{{4}})\b", re.IGNORECASE)
_TIME: Final = re.compile(r"(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?(?![\d:])")
_NUMBER: Final = re.compile(
    r"(?<![A-Za-z_\d.])([-+]?)(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"\s*([%\u2030\u4e07\u4ebf]|percent\b|thousand\b|million\b|billion\b)?(?![A-Za-z_\d])",
    re.IGNORECASE,
)
_PERCENT: Final = ("%", "percent")
_SCALES: Final = {
    "%": 1.0,
    "percent": 1.0,
    "\u2030": 0.1,
    "\u4e07": 1e4,
    "\u4ebf": 1e8,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
}
_WORDS: Final = {
    word: float(number)
    for number, word in enumerate(
        ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], start=2
    )
}
_WORD: Final = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)
_CHINESE_DIGITS: Final = {
    "\u4e8c": 2, "\u4e24": 2, "\u4e09": 3, "\u56db": 4, "\u4e94": 5,
    "\u516d": 6, "\u4e03": 7, "\u516b": 8, "\u4e5d": 9,
}  # fmt: skip
_CHINESE: Final = re.compile(
    "(?<![\u661f\u671f\u5468\u7b2c])(?:"
    "([\u4e8c\u4e24\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d])?(\u5341)([\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d])?"
    "|([\u4e8c\u4e24\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d]))"
    "(?=[\u4e2a\u4ef6\u53f0\u5957\u7bb1\u5929\u5c0f\u65f6\u6b21\u4eba\u5f20\u4efd\u5e74\u6708\u5468\u540d\u5206\u5428])"
)


@dataclass(frozen=True, slots=True)
class Quantities:
    """What stands in a text.

    Attributes:
        numbers: Each value once, in the order of the text; 15 % is 15, 3 万 is 30000.
        dates: Each date once.
        minutes: Times of day, in minutes after midnight.
        percents: Those of the numbers that are percentages.
    """

    numbers: tuple[float, ...]
    dates: tuple[date, ...]
    minutes: tuple[int, ...]
    percents: tuple[float, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands there."""
        return not (self.numbers or self.dates or self.minutes)


def read_quantities(text: str) -> Quantities:
    """Read the numbers, dates and times of a text."""
    rest = NORMALISERS["fold_width"](text[:MAX_TEXT_CHARACTERS])
    dates: list[date] = []
    for pattern, order in ((_YEAR_FIRST, (0, 1, 2)), (_MONTH_FIRST, (2, 0, 1)), (_DAY_FIRST, (2, 1, 0))):
        rest = pattern.sub(lambda found, order=order: _take_date(found, order, dates), rest)  # type: ignore[misc]
    minutes: list[int] = []

    def take_time(found: re.Match[str]) -> str:
        minutes.append(60 * int(found[1]) + int(found[2]))
        return " ; "

    rest = _TIME.sub(take_time, rest)
    numbers = [(found.start(), _value_of(found)) for found in _NUMBER.finditer(rest)]
    numbers += [(found.start(), _WORDS[found[1].lower()]) for found in _WORD.finditer(rest)]
    numbers += [(found.start(), _chinese_value(found)) for found in _CHINESE.finditer(rest)]
    percents = [_value_of(found) for found in _NUMBER.finditer(rest) if (found[3] or "").lower() in _PERCENT]
    ordered = [value for _, value in sorted(numbers)]
    return Quantities(
        numbers=tuple(dict.fromkeys(ordered)),
        dates=tuple(dict.fromkeys(dates)),
        minutes=tuple(dict.fromkeys(minutes)),
        percents=tuple(dict.fromkeys(percents)),
    )


def without_quantities(text: str) -> str:
    """Return a text with every quantity replaced by ``#``, for comparing what stands around them."""
    rest = NORMALISERS["fold_width"](text)
    for pattern in (_YEAR_FIRST, _MONTH_FIRST, _DAY_FIRST, _TIME):
        rest = pattern.sub("#", rest)
    return _NUMBER.sub("#", rest)


def _take_date(found: re.Match[str], order: tuple[int, int, int], dates: list[date]) -> str:
    groups = found.groups()
    year, month, day = (groups[index] for index in order)
    try:
        dates.append(date(int(year), _MONTHS.get(month[:3].lower()) or int(month), int(day)))
    except ValueError:
        return found[0]
    return " ; "


def _value_of(found: re.Match[str]) -> float:
    # A minus sign after a word or a closing bracket is a dash.
    before = found.string[found.start() - 1 : found.start()] if found.start() else ""
    sign = -1.0 if found[1] == "-" and not (before.isalnum() or before in ")]") else 1.0
    return sign * float(found[2].replace(",", "")) * _SCALES.get((found[3] or "").lower(), 1.0)


def _chinese_value(found: re.Match[str]) -> float:
    if found[4]:
        return float(_CHINESE_DIGITS[found[4]])
    tens = _CHINESE_DIGITS[found[1]] if found[1] else 1
    return float(10 * tens + (_CHINESE_DIGITS[found[3]] if found[3] else 0))
