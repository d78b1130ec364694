"""What a text says by its wording, in English and Chinese: refusals, admissions, closings, language.

The lists hold whole phrases that models use, not single words of a task.
"""

import re
from typing import Final

from evaluation.engine.scoring.fields import NORMALISERS

HEAD_CHARACTERS: Final = 400
"""A refusal or an admission stands at the beginning of an answer."""

MIN_LANGUAGE_LETTERS: Final = 8
"""Shorter texts, such as a code or a name, have no language."""

_CANNOT: Final = r"can(?:not|'t)|am (?:not able|unable) to|won't"
_REFUSAL: Final = re.compile(
    rf"\bi (?:{_CANNOT}) (?:help|assist|do that|comply|provide|process|answer|complete|"
    r"fulfil+|open|view|see|read)"
    r"|\bi'm (?:sorry|afraid),? (?:but )?i (?:can(?:not|'t)|am unable)|\bi'm (?:not able|unable) to"
    r"|\bas an ai(?: language model)?,? i (?:can(?:not|'t)|do not|don't|am not)"
    "|\u6211(?:\u65e0\u6cd5|\u4e0d\u80fd)(?:\u5e2e\u52a9|\u534f\u52a9|\u5904\u7406|\u63d0\u4f9b|\u56de\u7b54|"
    "\u5b8c\u6210|\u67e5\u770b|\u6253\u5f00|\u8bfb\u53d6|\u6ee1\u8db3)"
    "|(?:\u62b1\u6b49|\u5bf9\u4e0d\u8d77)[\uff0c,]?\\s*\u6211?(?:\u65e0\u6cd5|\u4e0d\u80fd)"
    "|\u4f5c\u4e3a(?:\u4e00\u4e2a)?(?:AI|\u4eba\u5de5\u667a\u80fd)[^\u3002]{0,12}(?:\u65e0\u6cd5|\u4e0d\u80fd)",
    re.IGNORECASE,
)
_ADMISSION: Final = re.compile(
    r"\bi (?:do not|don't) know\b|\bi'?(?:m| am) not (?:sure|aware|familiar)\b"
    r"|\bi (?:do not|don't) have (?:any |enough |access to )?(?:\w+ )?(?:information|data|details|access)\b"
    r"|\bno information (?:is|was) (?:given|provided|available)\b"
    r"|\b(?:is|are|was|were) not (?:specified|mentioned|stated|provided|given) in\b"
    "|\u6211?\u4e0d(?:\u77e5\u9053|\u6e05\u695a|\u4e86\u89e3|\u786e\u5b9a)"
    "|(?:\u6ca1\u6709|\u7f3a\u4e4f|\u65e0)(?:\u76f8\u5173|\u8db3\u591f|\u5177\u4f53)\u7684?(?:\u4fe1\u606f|"
    "\u8d44\u6599|\u6570\u636e)|\u672a(?:\u63d0\u53ca|\u63d0\u4f9b|\u8bf4\u660e)",
    re.IGNORECASE,
)
_CLOSING: Final = re.compile(
    r"let me know if|feel free to|i hope (?:this|that) helps|is there anything else|don't hesitate to"
    r"|if you have any (?:other |further |more )?questions"
    "|\u5e0c\u671b(?:\u4ee5\u4e0a|\u8fd9)?[^\u3002]{0,12}\u5e2e\u52a9"
    "|\u5982(?:\u679c)?(?:\u60a8|\u4f60)?(?:\u8fd8)?\u6709(?:\u4efb\u4f55|\u5176\u4ed6|\u4ec0\u4e48)[^\u3002]{0,10}"
    "(?:\u95ee\u9898|\u7591\u95ee)|\u968f\u65f6(?:\u8054\u7cfb|\u544a\u8bc9|\u63d0\u95ee)|\u795d(?:\u60a8|\u4f60)",
    re.IGNORECASE,
)
_MARKDOWN: Final = re.compile(
    r"^\s{0,3}(?:#{1,6}\s|[-*+]\s|\d+[.)\u3001]\s?)|\*\*[^*\n]+\*\*|^\s*\|.+\|\s*$", re.MULTILINE
)
_EMOJI: Final = re.compile("[\u2600-\u27bf\U0001f300-\U0001faff]")
_COMPUTING: Final = re.compile(
    r"\b(?:total|sum|in all|altogether|how (?:many|much|long|old)|difference|average|mean"
    r"|percent(?:age)?|per cent|remaining|left over|balance|calculate|compute"
    r"|days? (?:between|until|after|before)|due|net|gross|vat|tax|discount)\b"
    "|\u5408\u8ba1|\u603b\u5171|\u4e00\u5171|\u5171\u8ba1|\u603b\u989d|\u603b\u4ef7|\u603b\u8ba1|\u5e73\u5747"
    "|\u5dee\u989d|\u76f8\u5dee|\u8fd8\u5269|\u5269\u4f59|\u591a\u5c11|\u51e0\u5929|\u51e0\u5c0f\u65f6|\u6298"
    "|\u7a0e|\u8ba1\u7b97|\u767e\u5206\u6bd4|\u5360\u6bd4|\u5230\u671f",
    re.IGNORECASE,
)
_CJK: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f]")
_WORDS: Final = re.compile("[\u3400-\u9fff]|[A-Za-z\u00c0-\u024f]{3,}|\\d+")
_EDGE: Final = " \t\r\n.,;:!?\"'`*()[]" + (
    "\u3002\uff0c\uff1b\uff1a\uff01\uff1f\u201c\u201d\u2018\u2019\uff08\uff09\u300c\u300d"
)
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        "the and for are was were you your our with that this from have has had not but can will would could "
        "should they them there their what which when where who how all any its please thank thanks",
    )
)


def normal(text: str) -> str:
    """Return a text for comparing: NFC, full width folded, case folded, blanks collapsed, edge marks cut."""
    for name in ("nfc", "fold_width", "casefold", "collapse_whitespace"):
        text = NORMALISERS[name](text)
    return text.strip(_EDGE)


def stands_in(part: str, text: str) -> bool:
    """Say whether a text stands in another, as whole words where it begins or ends with a Latin letter or a
    digit.
    """
    wanted, whole = normal(part), normal(text)
    if not wanted:
        return False
    before = r"(?<![a-z0-9])" if wanted[0].isascii() and wanted[0].isalnum() else ""
    after = r"(?![a-z0-9])" if wanted[-1].isascii() and wanted[-1].isalnum() else ""
    return re.search(before + re.escape(wanted) + after, whole) is not None


def is_refusal(text: str) -> bool:
    """Say whether an answer begins by refusing."""
    return _REFUSAL.search(text[:HEAD_CHARACTERS]) is not None


def is_admission(text: str) -> bool:
    """Say whether an answer begins by saying that it does not know."""
    return _ADMISSION.search(text[:HEAD_CHARACTERS]) is not None


def has_closing(text: str) -> bool:
    """Say whether an answer ends with a stock phrase such as "let me know if"."""
    return _CLOSING.search(text[-HEAD_CHARACTERS:]) is not None


def has_markdown(text: str) -> bool:
    """Say whether a text is set with headings, lists, tables or bold words."""
    return _MARKDOWN.search(text) is not None


def has_emoji(text: str) -> bool:
    """Say whether a text has an emoji or a dingbat."""
    return _EMOJI.search(text) is not None


def asks_for_computing(text: str) -> bool:
    """Say whether a text speaks of totals, differences, percentages, spans of time and the like."""
    return _COMPUTING.search(text) is not None


def script_of(text: str) -> str | None:
    """Return "cjk" or "latin", whichever most letters of a text are; None for a text of few letters.

    A CJK character counts as two letters: it carries about as much as two Latin ones or more.
    """
    num_cjk, num_latin = 2 * len(_CJK.findall(text)), len(_LATIN.findall(text))
    if num_cjk + num_latin < MIN_LANGUAGE_LETTERS:
        return None
    return "cjk" if num_cjk >= num_latin else "latin"


def terms_of(text: str) -> frozenset[str]:
    """Return what a text is about: its words of three letters or more, its CJK characters and numbers, but
    for the commonest words.
    """
    return frozenset(term for term in _WORDS.findall(text.casefold()) if term not in _STOP)
