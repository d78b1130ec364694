"""Which writing systems a text uses, by code points: the test that is right on short texts too."""

import re
import string
from collections.abc import Mapping

HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = r"\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"

_RANGES: Mapping[str, str] = {
    "han": HAN,
    "kana": KANA,
    "hangul": r"\u1100-\u11ff\u3131-\u318e\uac00-\ud7af",
    "latin": r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a",
    "cyrillic": r"\u0400-\u052f",
    "greek": r"\u0370-\u03ff\u1f00-\u1fff",
    "arabic": r"\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f\u08a0-\u08c9\ufb50-\ufdff\ufe70-\ufefc",
    "hebrew": r"\u05d0-\u05ea",
    "thai": r"\u0e01-\u0e4e",
    "devanagari": r"\u0904-\u0939\u0958-\u0961",
}
_RUNS = {name: re.compile(f"[{ranges}]+") for name, ranges in _RANGES.items()}
SCRIPTS = (*_RANGES, "other")
_ASCII_LETTERS = string.ascii_letters.encode()
_ASCII = re.compile(r"[\x00-\x7f]+")

# A Han character carries about a Latin word of two or three letters; Hangul and kana a syllable.
LETTERS_PER_CHARACTER: Mapping[str, int] = {"han": 3, "kana": 2, "hangul": 2}


def count_scripts(text: str) -> dict[str, int]:
    """Return how many letters of each writing system a text has; systems without any are left out.

    ``other`` counts the letters of all systems that have no name in ``SCRIPTS``.
    """
    # Most of most texts is ASCII, of which only the Latin letters count: no pattern need look at it.
    num_ascii = _count_ascii_letters(text)
    if text.isascii():
        return {"latin": num_ascii} if num_ascii else {}
    rest = _ASCII.sub(" ", text)
    counts = {name: sum(map(len, runs.findall(rest))) for name, runs in _RUNS.items()}
    counts["other"] = max(0, sum(map(str.isalpha, rest)) - sum(counts.values()))
    counts["latin"] += num_ascii
    return {name: number for name, number in counts.items() if number}


def count_letters(text: str) -> int:
    """Return how many letters a text has, of all writing systems."""
    return _count_ascii_letters(text) if text.isascii() else sum(map(str.isalpha, text))


def _count_ascii_letters(text: str) -> int:
    encoded = text.encode("ascii", "ignore")
    return len(encoded) - len(encoded.translate(None, _ASCII_LETTERS))


def weigh_scripts(text: str) -> dict[str, int]:
    """Return the same in Latin letters' worth: a Han character counts three, kana and Hangul two."""
    return {name: number * LETTERS_PER_CHARACTER.get(name, 1) for name, number in count_scripts(text).items()}
