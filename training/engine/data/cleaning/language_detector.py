"""Which language a text is in, of those that share a writing system: lingua's offline models.

Models are read when a language is first asked for, and stay in the process: about 30 MB a language, 245 MB
for the eight of the Latin script. A text takes 0.2-0.6 ms on one core. The low-accuracy mode is not used:
on 5,073 English texts it was wrong on 319, the full models on 71 (twelve languages, no margin).
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from training.engine.data.cleaning.writing_systems import count_letters
from training.engine.errors import ConfigInvalid

if TYPE_CHECKING:
    from lingua import Language, LanguageDetector

_BY_SCRIPT: Mapping[str, str] = {
    "latin": (
        "af sq az eu bs ca hr cs da nl en eo et fi fr lg de hu is id ga it la lv lt ms mi nb nn pl pt ro sn "
        "sk sl so st es sw sv tl ts tn tr vi cy xh yo zu"
    ),
    "cyrillic": "be bg kk mk mn ru sr uk",
    "arabic": "ar fa ur",
    "devanagari": "hi mr",
    "han": "zh",
    "kana": "ja",
    "hangul": "ko",
    "greek": "el",
    "hebrew": "he",
    "thai": "th",
    "other": "bn gu hy ka pa ta te",
}
SCRIPT_OF: Mapping[str, str] = {
    code: script for script, codes in _BY_SCRIPT.items() for code in codes.split()
}
"""ISO 639-1 code of every language that can be named, and the writing system that tells it."""

_ALSO_WRITTEN_IN: Mapping[str, frozenset[str]] = {
    "ja": frozenset(("han", "kana")),
    "ko": frozenset(("hangul", "han")),
    "sr": frozenset(("cyrillic", "latin")),
}
_RIVALS: Mapping[str, tuple[str, ...]] = {
    "latin": ("de", "en", "es", "fr", "it", "nl", "pl", "pt"),
    "cyrillic": ("bg", "ru", "uk"),
    "arabic": ("ar", "fa", "ur"),
    "devanagari": ("hi", "mr"),
}
"""What a text of a script is told apart from. A language that is not here is mostly taken for one that is
near it (Swedish for German), and so still not for the expected one; one that is near none of these passes.
More languages cost memory and make more mistakes."""

MIN_LETTERS = 20
"""Shorter texts are not judged: every detector is unreliable on them (FACTS 8)."""
_MIN_LETTERS_IN_PLAIN_WORDS = 12
_MAX_CHARACTERS = 1000
_MAX_REMEMBERED = 10_000
"""Texts whose languages are remembered, in some 10 MB: a small dataset is asked about in both passes, and
short answers come again and again."""
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")


@cache
def scripts_of(code: str) -> frozenset[str]:
    """Return the writing systems of a language."""
    return _ALSO_WRITTEN_IN.get(code, frozenset((SCRIPT_OF[code],)))


def compare_languages(text: str, script: str, expected: frozenset[str]) -> dict[str, float]:
    """Return the confidence, 0-1 and 1 in sum, in each language that the text may be in.

    Capitalised words are left out: names of people, places and works say nothing of the language, and make a
    detector see Italian in English talk of pasta. Empty when the text is too short without them (12 letters),
    too short as a whole (20), or there is nothing to tell apart.

    Args:
        text: Prose of mostly one writing system.
        script: That system.
        expected: Languages to compare besides the usual ones of the script.

    Raises:
        ConfigInvalid: ``library-missing``.
    """
    codes = _list_candidates(script, expected)
    if len(codes) < 2 or count_letters(text) < MIN_LETTERS:
        return {}
    plain = " ".join(word for word in _WORD.findall(text[:_MAX_CHARACTERS]) if not word[0].isupper())
    if count_letters(plain) < _MIN_LETTERS_IN_PLAIN_WORDS:
        return {}
    return dict(_compute_confidences(plain, codes))


@lru_cache(maxsize=64)
def _list_candidates(script: str, expected: frozenset[str]) -> frozenset[str]:
    return frozenset((*_RIVALS.get(script, ()), *(code for code in expected if script in scripts_of(code))))


@lru_cache(maxsize=_MAX_REMEMBERED)
def _compute_confidences(text: str, codes: frozenset[str]) -> tuple[tuple[str, float], ...]:
    detector, names = _load_detector(codes)
    values = detector.compute_language_confidence_values(text)
    return tuple((names[value.language], value.value) for value in values)


@lru_cache(maxsize=4)
def _load_detector(codes: frozenset[str]) -> "tuple[LanguageDetector, Mapping[Language, str]]":
    """Return the detector of some languages and their codes by its names for them."""
    # Imported when needed: the catalogue of steps is also read where the library is not installed.
    try:
        from lingua import IsoCode639_1, Language, LanguageDetectorBuilder
    except ImportError as error:
        raise ConfigInvalid(
            "library-missing", "telling languages apart needs lingua; install assay-gate[data]"
        ) from error
    iso_codes = {code: IsoCode639_1.from_str(code.upper()) for code in sorted(codes)}
    names = {Language.from_iso_code_639_1(iso_code): code for code, iso_code in iso_codes.items()}
    return LanguageDetectorBuilder.from_iso_codes_639_1(*iso_codes.values()).build(), names
