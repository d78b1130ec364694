"""Texts as sets of shingles, and how similar two such sets are. No torch here.

Similarity is Jaccard's: shared shingles over all shingles of both texts (Broder, "On the resemblance and
containment of documents", 1997). Punctuation, width, case and white space do not count, so ``好的，谢谢。``
and ``好的,谢谢`` have similarity 1; formulas that differ in their signs only look alike. A text of fewer
words than a shingle has is one shingle and is similar only to itself. ``near_duplicates`` compares many
texts.
"""  # noqa: RUF002 (full-width punctuation is what is described)

import re
import unicodedata
from dataclasses import dataclass

WORDS_PER_SHINGLE = 3
CHARACTERS_PER_SHINGLE = 5
MIN_CJK_FRACTION = 0.2
"""From this part of its letters on, a text counts as written without spaces between words."""

# 1.5, 10:30 and 2024-05-01 are one word each: without the marks 1.5 would be the same as 15.
_WORD = re.compile(r"\w+(?:(?<=\d)[.,:/-](?=\d)\w+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


def normalise(text: str) -> str:
    """Return the text for comparison: full width folded (NFKC), case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@dataclass(frozen=True, slots=True)
class TextUnits:
    """What the shingles of a text are runs of.

    Attributes:
        words: Of a text with spaces between words; empty for the other kinds.
        letters: Of a Chinese, Japanese or Korean text, punctuation and spaces left out; "" otherwise.
        marks: The whole of a text that has neither words nor letters; "" otherwise.
    """

    words: tuple[str, ...] = ()
    letters: str = ""
    marks: str = ""


def split_units(text: str) -> TextUnits:
    """Split a normalised text into words or letters; all parts are empty for an empty text."""
    words = _WORD.findall(text)
    if not words:
        return TextUnits(marks=text)
    if not text.isascii():
        letters = "".join(words)
        if len(_CJK.findall(letters)) >= MIN_CJK_FRACTION * len(letters):
            return TextUnits(letters=letters)
    return TextUnits(words=tuple(words))


def make_shingles(text: str) -> frozenset[str]:
    """Return the shingles of a normalised text: runs of 3 words, or of 5 characters for Chinese, Japanese,
    Korean.

    A text that is shorter than one shingle is one shingle; an empty text has none. The first character tells
    the two kinds apart, so that they never match each other.
    """
    units = split_units(text)
    if units.words:
        last = max(1, len(units.words) - WORDS_PER_SHINGLE + 1)
        return frozenset(f"w{' '.join(units.words[i : i + WORDS_PER_SHINGLE])}" for i in range(last))
    if units.letters:
        last = max(1, len(units.letters) - CHARACTERS_PER_SHINGLE + 1)
        return frozenset(f"c{units.letters[i : i + CHARACTERS_PER_SHINGLE]}" for i in range(last))
    return frozenset({f"m{units.marks}"}) if units.marks else frozenset()


def jaccard(left: frozenset[object], right: frozenset[object]) -> float:
    """Return the similarity of two sets, 0-1; 0 when both are empty."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0
