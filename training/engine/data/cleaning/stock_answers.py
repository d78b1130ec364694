# ruff: noqa: RUF001 (full-width marks are what this is about)
"""Cleaning step: refusals and stock phrases of assistants in answers (MISSION C5: de-flavouring).

A model repeats the phrases of whoever wrote its answers. Refusals that are all of an answer are dropped;
openings and closings around content are flagged, or taken off where the rest stands alone. JSON answers are
left alone: phrases inside of values are the matter of the check ``stock_phrases``.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.cleaning import stock_lists
from training.engine.data.cleaning.json_answers import is_json_container
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.examples import Example
from training.engine.settings_rules import FLAG, TEXTS

MAX_REFUSAL_WEIGHT = 400
"""Longer answers say something besides the refusal; in characters, of which a Chinese one counts three."""
_MAX_LEADS = 3
_MAX_CUTS = 3
_MAX_SENTENCE = 200
_MAX_PHRASES = 20
_HAN = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_WORD = re.compile(r"[^\W_]")
_FOLDED = {"'": "['\u2018\u2019`]", ",": r"[,，]\s{0,2}", "!": r"[!！]\s{0,2}", " ": r"\s{1,3}"}
_HALF_WIDTH = str.maketrans("，！\u2019", ",!'")


def _compile(phrases: Iterable[str], *, behind: str = "") -> re.Pattern[str]:
    """Return a pattern for literal phrases, the longest first, whatever their case, blanks and widths of
    marks.
    """
    literals = {phrase.strip().translate(_HALF_WIDTH) for phrase in phrases}
    ordered = sorted(literals, key=lambda phrase: (-len(phrase), phrase))
    choices = "|".join(map(_to_pattern, ordered)) or r"(?!)"
    return re.compile(f"(?P<phrase>{choices}){behind}", re.IGNORECASE)


def _to_pattern(phrase: str) -> str:
    pattern = "".join(_FOLDED.get(character, re.escape(character)) for character in phrase.replace(", ", ","))
    start = r"(?<![A-Za-z])" if _LATIN.match(phrase[0]) else ""
    return start + pattern + (r"(?![A-Za-z])" if _LATIN.match(phrase[-1]) else "")


# What may stand between a disclaimer and the refusal: the rest of a clause, "but".
_LEAD_END = r"[^,，.。!！:：\n]{0,30}[,，.。!！:：\s]{1,3}(?:(?:but|however|and|但是|但)[,，\s]{0,2})?"
_DISCLAIMER = _compile(stock_lists.DISCLAIMERS, behind=_LEAD_END)
_APOLOGY = _compile(
    stock_lists.APOLOGIES, behind=r"[,，.。!！:：\s]{0,3}(?:(?:but|however|and|但是|但)[,，\s]{0,2})?"
)
_NEGATION = _compile(stock_lists.NEGATIONS)
_TURN = _compile(stock_lists.TURNS)
_INTRODUCTION = _compile(stock_lists.INTRODUCTIONS)
_INTRODUCED = re.compile(r"[^:：.。!！?？\n]{0,120}[:：]\s{0,10}")
_ANNOUNCEMENT = _compile(stock_lists.ANNOUNCEMENTS)
_ANNOUNCED = re.compile(r"[^.。!！:：\n]{0,60}(?:[。！!：\n]|[.:](?=\s))\s{0,10}")
_MARKS = r"\s?[!！.。~～]{1,3}\s{0,10}"
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？\n]")


class StockPhrases:
    """Finds stock phrases in answers; holds the lists with a team's own additions."""

    def __init__(
        self, *, refusals: Iterable[str] = (), openings: Iterable[str] = (), closings: Iterable[str] = ()
    ) -> None:
        """Compile the lists.

        Args:
            refusals: Literal beginnings of answers that are refusals.
            openings: Literal beginnings that carry no content.
            closings: Literal beginnings of last sentences that carry no content.
        """
        self._refusal = _compile((*stock_lists.REFUSALS, *refusals))
        self._interjection = _compile(stock_lists.INTERJECTIONS, behind=_MARKS)
        self._own_opening = _compile(openings, behind=r"[!！.。~～,，:：\s]{0,10}")
        self._closing = _compile((*stock_lists.CLOSINGS, *closings))

    def is_refusal(self, answer: str) -> bool:
        """Return whether the answer is nothing but a refusal."""
        text = answer.strip()
        if len(text) > MAX_REFUSAL_WEIGHT or len(text) + 2 * len(_HAN.findall(text)) > MAX_REFUSAL_WEIGHT:
            return False
        position, is_disclaimed = 0, False
        for _ in range(_MAX_LEADS):
            if found := _DISCLAIMER.match(text, position):
                is_disclaimed = True
            elif not (found := _APOLOGY.match(text, position)):
                break
            position = found.end()
        if self._refusal.match(text, position):
            return not _TURN.search(text, position)
        return is_disclaimed and bool(_NEGATION.search(text)) and not _TURN.search(text, position)

    def find_opening(self, text: str) -> tuple[str, int]:
        """Return the phrase at the start and where the content begins; ("", 0) when there is none, and 0 as
        the beginning when the phrase cannot be told from the content.
        """
        found = self._own_opening.match(text) or self._interjection.match(text)
        if found:
            return found["phrase"], found.end()
        found = _DISCLAIMER.match(text)
        if found:
            return found["phrase"], 0
        for opening, end in ((_ANNOUNCEMENT, _ANNOUNCED), (_INTRODUCTION, _INTRODUCED)):
            if found := opening.match(text):
                ended = end.match(text, found.end())
                return found["phrase"], ended.end() if ended else 0
        return "", 0

    def find_closing(self, text: str) -> tuple[str, int]:
        """Return the phrase that the last sentence begins with, and where that sentence begins; ("", length)
        when there is none.
        """
        tail = max(0, len(text) - _MAX_SENTENCE)
        # The sentence's own mark is no boundary in front of it.
        ends = [found.end() for found in _SENTENCE_END.finditer(text, tail, max(tail, len(text) - 1))]
        start = ends[-1] if ends else (0 if tail == 0 else len(text))
        while start < len(text) and text[start].isspace():
            start += 1
        found = self._closing.match(text, start)
        return (found["phrase"], start) if found else ("", len(text))


class _DropStockAnswers:
    def __init__(self, parameters: Mapping[str, Any], _context: StepContext) -> None:
        self._phrases = StockPhrases(
            refusals=parameters["extra_refusals"],
            openings=parameters["extra_openings"],
            closings=parameters["extra_closings"],
        )
        self._strips: bool = parameters["strip"]
        self._kept = frozenset(name.casefold() for name in parameters["keep_categories"])
        self.counts: Counter[Hashable] = Counter()

    def observe(self, example: Example) -> None:
        """Nothing is learnt."""

    def apply(self, example: Example) -> Outcome:
        answer = example.answer
        if answer is None or is_json_container(answer) or self._is_kept(example):
            return Outcome.kept(example)
        if self._phrases.is_refusal(answer):
            return Outcome.dropped("refused-answer", detail=shown(answer))
        reasons: list[str] = []
        content = self._cut_openings(answer.strip(), reasons)
        content = self._cut_closings(content, reasons)
        if not reasons:
            return Outcome.kept(example)
        if self._strips and content != answer.strip():
            return Outcome.changed(example.with_answer(content), *reasons)
        return Outcome.flagged(example, *reasons)

    def facts(self) -> Mapping[str, Any]:
        ranked = sorted(((str(phrase), times) for phrase, times in self.counts.items()), key=_rank)
        return {"phrases": {shown(phrase): times for phrase, times in ranked[:_MAX_PHRASES]}}

    def _is_kept(self, example: Example) -> bool:
        said = (example.fields.get("category"), example.fields.get("dimension"), *example.tags.values())
        return any(isinstance(name, str) and name.casefold() in self._kept for name in said)

    def _cut_openings(self, text: str, reasons: list[str]) -> str:
        for _ in range(_MAX_CUTS):
            phrase, start = self._phrases.find_opening(text)
            if not phrase or (start and not _WORD.search(text, start)):
                break
            self._note("stock-opening", phrase, reasons)
            if not start:
                break
            text = text[start:]
        return text

    def _cut_closings(self, text: str, reasons: list[str]) -> str:
        for _ in range(_MAX_CUTS):
            phrase, start = self._phrases.find_closing(text)
            content = text[:start].rstrip()
            if not phrase or not _WORD.search(content):
                break
            self._note("stock-closing", phrase, reasons)
            text = content
        return text

    def _note(self, reason: str, phrase: str, reasons: list[str]) -> None:
        reasons.append(reason)
        self.counts[" ".join(phrase.lower().split())] += 1


def _rank(counted: tuple[str, int]) -> tuple[int, str]:
    return -counted[1], counted[0]


KIND = StepKind(
    name="drop_stock_answers",
    version=1,
    summary="Drops answers that only refuse; flags or takes off stock openings and closings.",
    source="MISSION C5",
    rules={
        "strip": FLAG,
        "keep_categories": TEXTS,
        "extra_refusals": TEXTS,
        "extra_openings": TEXTS,
        "extra_closings": TEXTS,
    },
    defaults={
        "strip": False,
        "keep_categories": ("refusal",),
        "extra_refusals": (),
        "extra_openings": (),
        "extra_closings": (),
    },
    build=_DropStockAnswers,
    is_local=True,
)
KINDS: tuple[StepKind, ...] = (KIND,)
