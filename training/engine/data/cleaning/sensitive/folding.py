"""Text made comparable for the rules, one character for one character, so that places stay the same."""

import re

BARRIER = "\0"
"""Separates texts that were joined for one search; no rule looks over it."""

_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
# Zero-width characters and the soft hyphen are put between digits to hide them.
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"
_FOLDED = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
        **dict.fromkeys(_SPACES + _INVISIBLE, " "),
        **dict.fromkeys(_DASHES, "-"),
    }
)
_WORD_BEFORE = re.compile(r"[A-Za-z0-9_]")


def fold(text: str) -> str:
    """Return a text of the same length with full-width characters, spaces and dashes as their ASCII ones."""
    return text if text.isascii() else text.translate(_FOLDED)


def context_before(text: str, start: int, length: int) -> str:
    """Return up to ``length`` lower-case characters in front of a place, not further than a barrier."""
    # Lower case is taken after cutting: it may change a text's length.
    return text[max(0, start - length) : start].rpartition(BARRIER)[2].lower()


def is_bounded(text: str, start: int, end: int) -> bool:
    """Return whether no ASCII letter, digit or underscore touches the span; Chinese may."""
    if start > 0 and _WORD_BEFORE.match(text[start - 1]):
        return False
    return end >= len(text) or not _WORD_BEFORE.match(text[end])


def keep_digits(text: str) -> str:
    """Return the ASCII digits of a text."""
    return "".join(char for char in text if char in "0123456789")
