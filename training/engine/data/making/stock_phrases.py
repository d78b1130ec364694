"""First and last sentences of a text, and those that are known as stock phrases of models. Only the ends of a
text are looked at, so the time does not grow with its length.
"""

from dataclasses import dataclass
from typing import Final

from training.engine.data.shingles import normalise

MAX_PHRASE_CHARACTERS = 120
"""A longer sentence is content, not a phrase."""
MIN_REST_WORDS = 3
MIN_REST_CJK_CHARACTERS = 6
"""What is left must have this many words, or of these characters, to stand alone."""
MIN_CJK_CHARACTERS = 4
"""A phrase of so many characters of Chinese, Japanese or Korean is as good as two words."""

# The full-width marks . ! ? , : ; are written as escapes, because they look like the narrow ones.
_STOPS: Final = ".!?\u3002\uff01\uff1f"
_SENTENCE_ENDS: Final = _STOPS + "\n"
_COMMAS: Final = ",\uff0c"
_COLONS: Final = ":\uff1a"
_CLAUSE_ENDS: Final = _COMMAS + _COLONS + ";\uff1b"
_BRACKETS: Final = ("()", "\uff08\uff09", "\u201c\u201d", "\u300c\u300d", "[]")
_STRUCTURE: Final = "#-*|>`•·"
_MAX_TAIL_MARKS: Final = 40

KNOWN_INTERJECTIONS: Final = frozenset(
    {
        "sure",
        "sure thing",
        "certainly",
        "of course",
        "absolutely",
        "definitely",
        "great question",
        "good question",
        "no problem",
        "great",
        "okay",
        "ok",
        "understood",
        "got it",
        "happy to help",
        "i'd be happy to help",
        "i'd be glad to help",
        "好的",
        "好",
        "当然",
        "当然可以",
        "没问题",
        "明白了",
        "收到",
        "很高兴为您服务",
        "很高兴能帮助你",
        "很高兴能帮助您",
        "好问题",
        "这是一个好问题",
        "这是个好问题",
    }
)
"""Openings that say nothing; they go when a sentence or clause ends after them."""

KNOWN_ANNOUNCEMENTS: Final = (
    "here is",
    "here's",
    "here are",
    "below is",
    "below are",
    "the following is",
    "以下是",
    "下面是",
    "以下为",
    "下面为",
)
"""Beginnings of openings that announce the answer; they go when a colon ends them."""

KNOWN_CLOSINGS: Final = (
    "i hope this helps",
    "hope this helps",
    "hope that helps",
    "let me know if",
    "please let me know if",
    "feel free to",
    "please feel free to",
    "please don't hesitate to",
    "don't hesitate to",
    "if you have any other questions",
    "if you have any further questions",
    "if you have any more questions",
    "if you have any questions",
    "if you need any further",
    "is there anything else i can",
    "希望对你有帮助",
    "希望对您有帮助",
    "希望这对你有帮助",
    "希望这对您有帮助",
    "希望以上",
    "希望这些",
    "如有其他问题",
    "如有任何问题",
    "如果你还有",
    "如果您还有",
    "如果你有任何",
    "如果您有任何",
    "还有其他问题吗",
    "请随时",
)
"""Beginnings of closings that offer more help."""

_CONNECTORS: Final = frozenset(
    {
        "and",
        "but",
        "so",
        "because",
        "which",
        "that",
        "then",
        "or",
        "nor",
        "yet",
        "therefore",
        "however",
        "also",
        "it",
        "this",
        "these",
        "those",
        "they",
        "he",
        "she",
    }
)
_CJK_CONNECTORS: Final = (
    "但",
    "而",
    "所以",
    "因此",
    "因为",
    "并且",
    "此外",
    "另外",
    "它",
    "这",
    "其中",
    "然而",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A sentence or clause at an end of a text.

    Attributes:
        phrase: Normalised, without punctuation and quotes around it; it holds a letter.
        rest: The text without it, stripped; with a capital where the phrase had one and a comma followed.
        end: The character that divides the two: a sentence's end, a line feed, a comma or colon.
        is_structure: Whether it looks like a heading, a list's or a table's line: never a stock phrase.
    """

    phrase: str
    rest: str
    end: str
    is_structure: bool

    @property
    def is_sentence(self) -> bool:
        """Whether a sentence's or line's end divides the two."""
        return self.end in _SENTENCE_ENDS

    @property
    def is_announcement(self) -> bool:
        """Whether it announces what follows, as "Here is the answer:" does."""
        return self.end in _COLONS and self.phrase.startswith(KNOWN_ANNOUNCEMENTS)

    @property
    def is_long(self) -> bool:
        """Whether the phrase has at least two words, or four characters of Chinese, Japanese or Korean."""
        return " " in self.phrase or _count_cjk(self.phrase) >= MIN_CJK_CHARACTERS


def find_first_part(text: str) -> Part | None:
    """Return the first sentence, or the first clause when that is a known stock phrase; None when neither
    ends within 120 characters, or nothing follows.
    """
    body = text.lstrip()
    for place, end in enumerate(body[: MAX_PHRASE_CHARACTERS + 1]):
        is_sentence = _is_sentence_end(body, place)
        if not is_sentence and end not in _CLAUSE_ENDS:
            continue
        part = _make_opening(body, place)
        if part is not None and (is_sentence or is_known_opening(part)):
            return part
        if is_sentence:
            return None
    return None


def find_last_part(text: str) -> Part | None:
    """Return the last sentence; None when it is longer than 120 characters, or nothing stands before it."""
    body = text.rstrip()
    stop = len(body)
    while stop > 0 and len(body) - stop < _MAX_TAIL_MARKS and not body[stop - 1].isalnum():
        stop -= 1
    for place in range(stop - 1, max(-1, stop - MAX_PHRASE_CHARACTERS - 2), -1):
        if _is_sentence_end(body, place):
            removed, rest = body[place + 1 :].lstrip(), body[: place + 1].rstrip()
            # Inside a code block a last line is code.
            if not _is_balanced(removed) or "```" in removed or rest.count("```") % 2:
                return None
            return _make_part(removed, rest, body[place])
    return None


def is_known_opening(part: Part) -> bool:
    """Return whether an opening is on the lists above."""
    return part.phrase in KNOWN_INTERJECTIONS or part.is_announcement


def is_known_closing(part: Part) -> bool:
    """Return whether a closing is on the list above."""
    return part.phrase.startswith(KNOWN_CLOSINGS)


def opening_can_go(part: Part) -> bool:
    """Return whether what follows an opening stands alone: long enough, and not leaning on what was said."""
    if not _is_enough(part.rest):
        return False
    if part.end in _COLONS:
        return True
    first = part.rest[:MAX_PHRASE_CHARACTERS].split(maxsplit=1)[0]
    leans = _strip_marks(first).casefold() in _CONNECTORS or part.rest.startswith(_CJK_CONNECTORS)
    return not leans and not "a" <= part.rest[0] <= "z"


def closing_can_go(part: Part) -> bool:
    """Return whether what precedes a closing stands alone; a colon there announced the closing."""
    return _is_enough(part.rest) and part.rest[-1] not in _COLONS


def _make_opening(body: str, place: int) -> Part | None:
    end = body[place]
    rest = body[place + 1 :]
    if end != "\n":
        rest = rest.lstrip(_STOPS)
    rest = rest.strip()
    if end in _COMMAS and body[0].isupper() and "a" <= rest[:1] <= "z":
        rest = rest[0].upper() + rest[1:]
    return _make_part(body[:place], rest, end) if _is_balanced(body[:place]) else None


def _make_part(removed: str, rest: str, end: str) -> Part | None:
    phrase = normalise_phrase(removed)
    if not rest or not any(map(str.isalpha, phrase)):
        return None
    is_structure = removed[0] in _STRUCTURE or any(map(str.isdigit, phrase))
    return Part(phrase=phrase, rest=rest, end=end, is_structure=is_structure)


def normalise_phrase(text: str) -> str:
    """Return a phrase as phrases are compared: normalised, without punctuation and quotes around it."""
    phrase = normalise(text[: 2 * MAX_PHRASE_CHARACTERS]).replace("\u2019", "'")
    return _strip_marks(phrase)


def _strip_marks(text: str) -> str:
    first = next((place for place, mark in enumerate(text) if mark.isalnum()), len(text))
    last = next((place for place in range(len(text), first, -1) if text[place - 1].isalnum()), first)
    return text[first:last]


def _is_sentence_end(text: str, place: int) -> bool:
    """A full stop ends a sentence before white space only: 3.5 and example.com go on."""
    if text[place] not in _SENTENCE_ENDS:
        return False
    return text[place] != "." or place + 1 == len(text) or text[place + 1].isspace()


def _is_balanced(text: str) -> bool:
    pairs_fit = all(text.count(left) == text.count(right) for left, right in _BRACKETS)
    return pairs_fit and all(text.count(mark) % 2 == 0 for mark in ("**", "*", '"', "`"))


def _is_enough(rest: str) -> bool:
    beginning = rest[: 2 * MAX_PHRASE_CHARACTERS]
    return len(beginning.split()) >= MIN_REST_WORDS or _count_cjk(beginning) >= MIN_REST_CJK_CHARACTERS


def _count_cjk(text: str) -> int:
    return sum("\u3040" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7af" for character in text)
