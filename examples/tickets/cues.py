"""Cues: short written signs by which a rule recognises what a text says.

A cue is words in order, in a notation that can be read aloud:

- ``locked out`` are these words side by side
- ``charge*`` is any word that begins so
- ``phone|ring me|us`` takes any of the words at its place
- ``whole _ team`` leaves one word or none between
- ``need .. today`` leaves up to eight words between, within one sentence

Before they are compared, a text is split into sentences, and these into lower-case words of letters and
digits. The module knows nothing of tickets, and it holds no cues itself. Only the standard library is used.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

# How many words a sign may stand for.
GAPS = {"_": 1, "..": 8}
# Shorter words are left as they are: one swap would make too many of them into another.
MIN_REPAIRED_LETTERS = 6

_SENTENCE_END = re.compile(r"[.!?;]+(?=\s)|[\n。]|[.!?]+$")


@dataclass(frozen=True, slots=True)
class CueSet:
    """The cues of one value.

    Attributes:
        says: any of these in a sentence says the value.
        unless: what these cover is taken out of the sentence first, such as a negated form of a cue.
    """

    says: tuple[str, ...]
    unless: tuple[str, ...] = ()

    def find(self, sentence: str) -> int | None:
        """Where in a prepared sentence the first cue begins, or None when there is none."""
        kept = compile_cues(self.unless).sub(lambda match: " -" * len(match.group().split()), sentence)
        match = compile_cues(self.says).search(kept)
        return None if match is None else match.start()

    def are_in(self, sentences: Iterable[str]) -> bool:
        """Whether a cue stands in any of the prepared sentences."""
        return any(self.find(sentence) is not None for sentence in sentences)


@cache
def compile_cues(cues: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern that finds any of the cues in a prepared sentence; without cues it finds nothing."""
    return re.compile("|".join(_to_pattern(cue) for cue in cues) if cues else r"(?!)")


def _to_pattern(cue: str) -> str:
    """The cue as a regular expression over a sentence in which a blank goes before every word."""
    parts = [
        rf"(?: \S+){{0,{GAPS[part]}}}?" if part in GAPS else f" (?:{part.replace('*', '[^ ]*')})"
        for part in cue.split()
    ]
    return "".join(parts) + r"(?= |\Z)"


def list_words(cues: Iterable[str]) -> frozenset[str]:
    """The words and beginnings of words (with their ``*``) that the cues are made of."""
    return frozenset(
        word for cue in cues for part in cue.split() if part not in GAPS for word in part.split("|")
    )


def prepare(text: str, *, glossary: Sequence[tuple[str, str]] = ()) -> list[str]:
    """The sentences of a text as lower-case words of letters and digits, a blank before each word.

    Full-width letters become plain ones, accents go, and "can't" is the word "cant".

    Args:
        text: any text.
        glossary: foreign words and what they mean, put in place of them.
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    for foreign, meaning in glossary:
        plain = plain.replace(foreign, f" {meaning} ")
    plain = re.sub(r"['\u2019`]", "", plain)
    sentences = [re.findall(r"[a-z0-9]+", sentence) for sentence in _SENTENCE_END.split(plain)]
    return ["".join(f" {word}" for word in words) for words in sentences if words]


def repair_swaps(sentence: str, known: frozenset[str]) -> str:
    """The prepared sentence with two swapped inner letters of a longer word put right.

    A word is changed only when it is not known itself and one swap makes a known word of it.

    Args:
        sentence: one of ``prepare``.
        known: from ``list_words``.
    """
    return "".join(f" {_repair_word(word, known)}" for word in sentence.split())


def _repair_word(word: str, known: frozenset[str]) -> str:
    if len(word) < MIN_REPAIRED_LETTERS or _is_known(word, known):
        return word
    for at in range(1, len(word) - 2):
        swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        if _is_known(swapped, known):
            return swapped
    return word


def _is_known(word: str, known: frozenset[str]) -> bool:
    return word in known or any(f"{word[:end]}*" in known for end in range(3, len(word) + 1))
