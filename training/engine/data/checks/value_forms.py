"""In which form a value is written: a date, a number with its unit. Forms, not values, should be uniform."""

import re
import unicodedata
from functools import lru_cache

_DATE_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("2024-01-05", re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")),
    ("2024-1-5", re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")),
    ("2024/01/05", re.compile(r"[0-9]{4}/[0-9]{2}/[0-9]{2}")),
    ("2024/1/5", re.compile(r"[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}")),
    ("2024.01.05", re.compile(r"[0-9]{4}\.[0-9]{1,2}\.[0-9]{1,2}")),
    ("20240105", re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")),
    ("2024年1月5日", re.compile(r"[0-9]{4} ?年 ?[0-9]{1,2} ?月 ?[0-9]{1,2} ?[日号]")),
    ("1月5日", re.compile(r"[0-9]{1,2} ?月 ?[0-9]{1,2} ?[日号]")),
    ("05.01.2024", re.compile(r"[0-9]{1,2}\.[0-9]{1,2}\.(?:[0-9]{2}){1,2}")),
    ("01/05/2024", re.compile(r"[0-9]{1,2}/[0-9]{1,2}/(?:[0-9]{2}){1,2}")),
    ("05-01-2024", re.compile(r"[0-9]{1,2}-[0-9]{1,2}-[0-9]{4}")),
    ("January 5, 2024", re.compile(r"[A-Z][a-z]{2,8}\.? [0-9]{1,2}(?:st|nd|rd|th)?,? [0-9]{4}")),
    ("5 January 2024", re.compile(r"[0-9]{1,2}(?:st|nd|rd|th)? [A-Z][a-z]{2,8}\.?,? [0-9]{4}")),
)
_TIME_BEHIND = re.compile(
    r"[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_AMOUNT = re.compile(
    r"([$€£¥\uffe5]|USD|EUR|CNY|RMB)?(\s?)[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,18})(?:[.,][0-9]{1,9})?"
    r"(\s?)([^\W\d_][^\d\s]{0,11}|[%‰°$€£¥\uffe5][A-Za-z]?)?"
)
_SAME_UNITS = {
    **dict.fromkeys(("¥", "\uffe5", "元", "人民币", "rmb", "cny"), "cny"),
    **dict.fromkeys(("$", "usd", "美元"), "usd"),
    **dict.fromkeys(("€", "eur", "欧元"), "eur"),
    **dict.fromkeys(("£", "gbp", "英镑"), "gbp"),
    **dict.fromkeys(("kg", "公斤", "千克"), "kg"),
    **dict.fromkeys(("km", "公里", "千米"), "km"),
    **dict.fromkeys(("m", "米"), "m"),
    **dict.fromkeys(("h", "小时", "hour", "hours"), "h"),
    **dict.fromkeys(("min", "分钟", "minute", "minutes"), "min"),
    **dict.fromkeys(("day", "days", "天"), "day"),
}
_MAX_CHARACTERS = 60
_MAX_REMEMBERED = 4096


def read_date_form(value: str) -> str | None:
    """Return how a date is written, shown with 5 January 2024; None when the text is no date."""
    return _read_date_form(value) if len(value) <= _MAX_CHARACTERS else None


# Values are mostly labels, which come again and again.
@lru_cache(maxsize=_MAX_REMEMBERED)
def _read_date_form(value: str) -> str | None:
    for form, pattern in _DATE_FORMS:
        match = pattern.match(value)
        if match is None:
            continue
        rest = value[match.end() :]
        if not rest:
            return form
        if _TIME_BEHIND.fullmatch(rest):
            return f"{form} with {'T' if rest[0] == 'T' else 'a'} time"
    return None


def read_amount_form(value: str) -> tuple[str, str] | None:
    """Return (unit, how it is written) of a number with or without a unit; None for other texts.

    ``7kg`` gives ``("kg", "10kg")``, ``7 公斤`` gives ``("kg", "10 公斤")``, ``7`` gives ``("", "10")``.
    """
    return _read_amount_form(value) if len(value) <= _MAX_CHARACTERS else None


@lru_cache(maxsize=_MAX_REMEMBERED)
def _read_amount_form(value: str) -> tuple[str, str] | None:
    match = _AMOUNT.fullmatch(value)
    if match is None:
        return None
    currency, gap_before, gap_behind, unit = (part or "" for part in match.groups())
    form = f"{currency}{gap_before if currency else ''}10{gap_behind if unit else ''}{unit}"
    name = (currency + unit).casefold()
    return _SAME_UNITS.get(name, name), form


def fold_spelling(value: str) -> str:
    """Return what spellings of one value share: case, width, spaces, hyphens and underscores folded."""
    folded = unicodedata.normalize("NFKC", value).casefold()
    return re.sub(r"[\s_\-\u2010-\u2015]", "", folded)
