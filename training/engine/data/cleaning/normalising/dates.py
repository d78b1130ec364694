# ruff: noqa: RUF001 (full-width marks and dashes are what this is about)
"""Dates to ISO 8601, where only one reading is possible."""

import re
from collections.abc import Callable
from datetime import date
from functools import partial

from training.engine.data.cleaning.normalising.treated import Treated

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR = r"(?:19|20)[0-9]{2}"
_DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"

_CHINESE = re.compile(
    rf"(?<![0-9A-Za-z_./-])(?P<y>{_YEAR}) ?年 ?(?P<m>[0-9]{{1,2}}) ?月 ?(?P<d>[0-9]{{1,2}}) ?[日号]"
)
_YEAR_FIRST = re.compile(
    rf"(?<![0-9A-Za-z_./-])(?P<y>{_YEAR})(?P<sign>[/.-])(?P<m>[0-9]{{1,2}})(?P=sign)(?P<d>[0-9]{{1,2}})"
    r"(?![0-9A-Za-z_]|[./-][0-9])"
)
_YEAR_LAST = re.compile(
    rf"(?<![0-9A-Za-z_./-])(?P<a>[0-9]{{1,2}})(?P<sign>[/.-])(?P<b>[0-9]{{1,2}})(?P=sign)(?P<y>{_YEAR})"
    r"(?![0-9A-Za-z_]|[./-][0-9])"
)
_MONTH_FIRST = re.compile(
    rf"(?<![0-9A-Za-z_./-])(?P<m>{_MONTH})\.? {{1,2}}(?P<d>{_DAY})(?:, ?| )(?P<y>{_YEAR})(?![0-9A-Za-z_])",
    re.IGNORECASE,
)
_DAY_FIRST = re.compile(
    rf"(?<![0-9A-Za-z_./-])(?P<d>{_DAY}) (?:of )?(?P<m>{_MONTH})\.?,? {{1,2}}(?P<y>{_YEAR})(?![0-9A-Za-z_])",
    re.IGNORECASE,
)

# What a form cannot lack. Most texts have nothing of it, and to see that is far less work than to try the
# form at each of their characters.
_YEAR_SIGN = re.compile(rf"{_YEAR}[/.-][0-9]")
_SIGN_YEAR = re.compile(rf"[/.-]{_YEAR}")
_BLANK_YEAR = re.compile(rf"[ ,]{_YEAR}")
_LOOK_BACK = 16
_LOOK_AHEAD = 12
# "5-7 March 2024" and "2024年3月5日至7日" are spans: an ISO date in place of one end would change them.
_SPAN_BEFORE = re.compile(
    r"(?<![0-9])[0-9]{1,2}(?:st|nd|rd|th)? ?(?:[-–—~/&,]|to|and|or|through|until|till) ?$", re.IGNORECASE
)
_SPAN_AFTER = re.compile(r" ?[-–—~～至到、] ?[0-9]{1,2}(?![0-9:])")
_CHINESE_SPAN_AFTER = re.compile(r" ?(?:[-–—]{1,2}|[~～、/至到和及或与]) ?[0-9]{1,2} ?[日号月]|[./-][0-9]")
_RUNS_ON = re.compile(r"[0-9A-Za-z]")
_LUNAR_BEFORE = re.compile(r"(?:农历|阴历|旧历)\s?$")
# "PyCharm 2024.1.4" is a version.
_NAME_BEFORE = re.compile(r"[A-Za-z] ?$")


def write_dates_as_iso(text: str, *, day_first: bool | None = None) -> Treated:
    """Return the text with full dates of the years 1900-2099 as ``2024-03-05``.

    Read are ``2024年3月5日``, ``2024/3/5``, ``2024.03.05``, ``March 5, 2024``, ``5th of March 2024`` and
    numbers that have one reading only (``13/04/2024``). Flags, each of which leaves the date as it is:
    ``ambiguous-date`` (``03/04/2024``; a version number), ``invalid-date`` (30 February), ``date-range`` (one
    end of a span).

    Args:
        text: Prose.
        day_first: How ``03/04/2024`` is read: true as 3 April, false as 4 March, None not at all.
    """
    flags: list[tuple[str, str]] = []
    if "年" in text:
        text = _CHINESE.sub(_replace_by(_read_chinese, flags), text)
    if _YEAR_SIGN.search(text):
        text = _YEAR_FIRST.sub(_replace_by(_read_year_first, flags), text)
    if _SIGN_YEAR.search(text):
        read_year_last = partial(_read_year_last, day_first=day_first)
        text = _YEAR_LAST.sub(_replace_by(read_year_last, flags), text)
    if _BLANK_YEAR.search(text):
        text = _MONTH_FIRST.sub(_replace_by(_read_month_first, flags), text)
        text = _DAY_FIRST.sub(_replace_by(_read_day_first, flags), text)
    return Treated(text, tuple(dict.fromkeys(flags)))


def _replace_by(
    read: Callable[[re.Match[str]], str], flags: list[tuple[str, str]]
) -> Callable[[re.Match[str]], str]:
    """Return what puts a date in its place, or leaves what is no date and notes why."""

    def replaced(found: re.Match[str]) -> str:
        result = read(found)
        if result in _FLAGS:
            flags.append((result, found[0]))
            return found[0]
        return result or found[0]

    return replaced


_FLAGS = ("ambiguous-date", "invalid-date", "date-range")


def _read_chinese(found: re.Match[str]) -> str:
    if _LUNAR_BEFORE.search(_before(found)):
        return ""
    if _CHINESE_SPAN_AFTER.match(_after(found)):
        return "date-range"
    iso = _iso(found["y"], found["m"], found["d"])
    # "3月5日10:30" would run together.
    needs_space = iso != "invalid-date" and _RUNS_ON.match(_after(found))
    return f"{iso} " if needs_space else iso


def _read_year_first(found: re.Match[str]) -> str:
    iso = _iso(found["y"], found["m"], found["d"])
    if iso == "invalid-date":
        # 2024/13/45 may be anything; 2024/02/30 is meant as a date.
        return iso if 1 <= int(found["m"]) <= 12 and 1 <= int(found["d"]) <= 31 else ""
    is_padded = len(found["m"]) == len(found["d"]) == 2
    if found["sign"] == "." and not is_padded and _NAME_BEFORE.search(_before(found)):
        return "ambiguous-date"
    return "date-range" if iso != found[0] and _SPAN_AFTER.match(_after(found)) else iso


def _read_year_last(found: re.Match[str], *, day_first: bool | None) -> str:
    first, second = int(found["a"]), int(found["b"])
    as_day_first, as_month_first = _iso(found["y"], second, first), _iso(found["y"], first, second)
    valid = [iso for iso in dict.fromkeys((as_day_first, as_month_first)) if iso != "invalid-date"]
    if len(valid) < 2:
        return valid[0] if valid else "invalid-date"
    if day_first is None:
        return "ambiguous-date"
    return as_day_first if day_first else as_month_first


def _read_month_first(found: re.Match[str]) -> str:
    month = _MONTHS.index(found["m"][:3].lower()) + 1
    return _iso(found["y"], month, found["d"].rstrip("sndrthSNDRTH"))


def _read_day_first(found: re.Match[str]) -> str:
    return "date-range" if _SPAN_BEFORE.search(_before(found)) else _read_month_first(found)


def _iso(year: str, month: str | int, day: str | int) -> str:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return "invalid-date"


def _before(found: re.Match[str]) -> str:
    return found.string[max(0, found.start() - _LOOK_BACK) : found.start()]


def _after(found: re.Match[str]) -> str:
    return found.string[found.end() : found.end() + _LOOK_AHEAD]
