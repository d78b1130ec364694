# ruff: noqa: RUF001 (full-width marks are what this is about)
"""How a text is written: list or prose, widths of its marks, its quotation marks, its end."""

import re
import unicodedata
from itertools import islice

_LIST_LINE = re.compile(
    r"^[ \t]{0,8}(?:[-*+•·▪●]|[0-9]{1,3}[.)、．）]|[一二三四五六七八九十]{1,3}、"
    r"|[(（][0-9]{1,2}[)）])[ \t]?\S",
    re.MULTILINE,
)
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_HALF_IN_CJK = re.compile(rf"[{_CJK}][,!?:;()]|[,!?:;()][{_CJK}]|[{_CJK}]\.(?:\s|\Z)")
_FULL = re.compile("[，。！？：；（）]")
_FULL_LETTERS = re.compile("[０-９Ａ-Ｚａ-ｚ]")
_QUOTES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("straight", re.compile(r"\"[^\"\n]{1,200}\"")),
    ("curly", re.compile("\u201c[^\u201c\u201d\n]{1,200}\u201d")),
    ("corner", re.compile("[「『][^「『」』\n]{1,200}[」』]")),
)
# The semicolon ends code.
_FINAL = frozenset(";.!?…。！？．~～")
_CLOSING = "\"'”’»）)]}】』」》>*_`"
_MIN_LIST_LINES = 2


def is_list(text: str) -> bool:
    """Return whether at least two lines are items of a list."""
    return len(list(islice(_LIST_LINE.finditer(text), _MIN_LIST_LINES))) == _MIN_LIST_LINES


def read_mark_widths(text: str) -> frozenset[str]:
    """Return which widths punctuation next to Chinese characters has: ``full``, ``half``, both or none."""
    widths = []
    if _HALF_IN_CJK.search(text):
        widths.append("half")
    if _FULL.search(text):
        widths.append("full")
    return frozenset(widths)


def has_full_width_letters(text: str) -> bool:
    """Return whether digits or Latin letters are written in full width."""
    return _FULL_LETTERS.search(text) is not None


def read_quotes(text: str) -> frozenset[str]:
    """Return the kinds of double quotation marks in a text: straight, curly, corner."""
    return frozenset(name for name, pattern in _QUOTES if pattern.search(text))


def ends_like_a_sentence(text: str) -> bool:
    """Return whether a text ends as sentences do: with a full stop or its like, perhaps with a closing mark
    behind it, with the end of a code block or of a table row, or with a symbol such as an emoji.
    """
    text = text.rstrip()
    stripped = text.rstrip(_CLOSING)
    if text.endswith(("```", "|")) or not stripped:
        return True
    return stripped[-1] in _FINAL or unicodedata.category(stripped[-1]) in ("So", "Sk")
