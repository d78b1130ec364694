"""Taking a teacher's stock openings and closings off free-text answers (MISSION C5, "de-flavouring").

Two sources: phrases that are known of many models, and phrases that one teacher uses far too often, which are
counted over the answers at hand. A phrase goes only where what is left stands alone, and never when an
instruction itself contains it: then it was asked for. Structured answers are left alone.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from training.engine.data.making.stock_phrases import (
    Part,
    closing_can_go,
    find_first_part,
    find_last_part,
    is_known_closing,
    is_known_opening,
    normalise_phrase,
    opening_can_go,
)
from training.engine.data.shingles import normalise
from training.engine.settings_rules import TEXTS, Rule, count, number

MAX_REMOVED_PER_PLACE = 3
"""Openings (and closings) that are taken off one answer at most: "Sure! Great question. Here it is:"."""
MAX_SHOWN_ANSWERS = 10
MAX_SHOWN_CHARACTERS = 400
MAX_LISTED_PHRASES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavourSettings:
    """What counts as a stock phrase.

    Attributes:
        min_fraction: A first or last sentence that this part of a teacher's answers share is one, above 0 and
            at most 1. The default is a choice, not from a source, and high: a sentence of content that many
            answers share is worse to lose than a rarer phrase is to keep.
        min_answers: ... and that at least this many of its answers share, each with another rest.
        extra_openings: Further first sentences, in any case and punctuation.
        extra_closings: Further last sentences.
        keep_phrases: Sentences that are never taken off, because the task wants them.
    """

    min_fraction: float = 0.2
    min_answers: int = 10
    extra_openings: tuple[str, ...] = ()
    extra_closings: tuple[str, ...] = ()
    keep_phrases: tuple[str, ...] = ()


FLAVOUR_RULES: Final[Mapping[str, Rule]] = {
    "min_fraction": number(0, 1, low_open=True),
    "min_answers": count(2),
    "extra_openings": TEXTS,
    "extra_closings": TEXTS,
    "keep_phrases": TEXTS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StockPhrase:
    """A phrase that a teacher uses too often.

    Attributes:
        phrase: Normalised, without punctuation around it.
        place: ``opening`` or ``closing``.
        teacher: Who uses it.
        num_answers: Answers that begin or end with it.
    """

    phrase: str
    place: str
    teacher: str
    num_answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StrippedAnswer:
    """An answer after de-flavouring.

    Attributes:
        text: What is left; the answer itself when nothing was taken off.
        removed: What was taken off as ``opening: phrase`` or ``closing: phrase``, normalised, in the order of
            removal.
        num_left: Stock phrases that stayed because the rest would not stand alone.
    """

    text: str
    removed: tuple[str, ...] = ()
    num_left: int = 0


class FlavourCounter:
    """Counts first and last sentences of answers by teacher; keeps phrases and digests, not answers."""

    def __init__(self) -> None:
        self._num_answers: Counter[str] = Counter()
        self._rests: defaultdict[tuple[str, str, str], set[bytes]] = defaultdict(set)

    def add(self, teacher: str, answer: str) -> None:
        """Count one answer."""
        self._num_answers[teacher] += 1
        for place, part in (("opening", find_first_part(answer)), ("closing", find_last_part(answer))):
            if part is not None and _may_be_frequent(part):
                rest = hashlib.blake2b(normalise(part.rest).encode("utf-8", "replace"), digest_size=8)
                self._rests[teacher, place, part.phrase].add(rest.digest())

    def find_stock_phrases(self, settings: FlavourSettings) -> tuple[StockPhrase, ...]:
        """Return the phrases that are too frequent, the most frequent first.

        The same phrase before the same rest counts once: answers that are equal altogether have no flavour.
        """
        found = [
            StockPhrase(phrase=phrase, place=place, teacher=teacher, num_answers=len(rests))
            for (teacher, place, phrase), rests in self._rests.items()
            if len(rests) >= max(settings.min_answers, settings.min_fraction * self._num_answers[teacher])
        ]
        return tuple(
            sorted(found, key=lambda item: (-item.num_answers, item.teacher, item.place, item.phrase))
        )


class FlavourStripper:
    """Takes stock phrases off answers and keeps account of it.

    Args:
        phrases: What ``FlavourCounter`` found.
        settings: Further phrases, and those to keep.
        instructions: What the teachers were told: a phrase that stands in it was asked for and stays.
    """

    def __init__(
        self, phrases: Iterable[StockPhrase], *, settings: FlavourSettings, instructions: Iterable[str] = ()
    ) -> None:
        self._phrases = tuple(phrases)
        self._frequent = {(item.teacher, item.place, item.phrase) for item in self._phrases}
        self._extra = {
            "opening": {normalise_phrase(text) for text in settings.extra_openings},
            "closing": {normalise_phrase(text) for text in settings.extra_closings},
        }
        self._kept = {normalise_phrase(text) for text in settings.keep_phrases}
        self._instructions = "\n".join(normalise(text) for text in instructions)
        self._removed: Counter[tuple[str, str]] = Counter()
        self._shown: list[Mapping[str, str]] = []
        self._num_answers = self._num_changed = self._num_left = 0

    def strip(self, teacher: str, answer: str) -> StrippedAnswer:
        """Take the stock phrases off one answer."""
        text, removed, num_left = answer, [], 0
        for place in ("opening", "closing"):
            for _ in range(MAX_REMOVED_PER_PLACE):
                is_opening = place == "opening"
                part = find_first_part(text) if is_opening else find_last_part(text)
                if part is None or not self._is_stock(teacher, place, part):
                    break
                if not (opening_can_go(part) if is_opening else closing_can_go(part)):
                    num_left += 1
                    break
                text = part.rest
                removed.append(f"{place}: {part.phrase}")
        return StrippedAnswer(text=text, removed=tuple(removed), num_left=num_left)

    def strip_and_count(self, teacher: str, answer: str, *, example_id: str) -> StrippedAnswer:
        """Do the same for an answer that becomes an example, and count it for the report."""
        stripped = self.strip(teacher, answer)
        self._num_answers += 1
        self._num_left += stripped.num_left
        self._removed.update((teacher, phrase) for phrase in stripped.removed)
        if stripped.removed:
            self._num_changed += 1
            if len(self._shown) < MAX_SHOWN_ANSWERS:
                before, after = _cut(answer), _cut(stripped.text)
                self._shown.append({"example_id": example_id, "before": before, "after": after})
        return stripped

    def report(self) -> "FlavourReport":
        """Return what was found and done."""
        removed = sorted(self._removed.items(), key=lambda item: (-item[1], item[0]))
        return FlavourReport(
            num_answers=self._num_answers,
            num_changed=self._num_changed,
            num_left=self._num_left,
            frequent=self._phrases[:MAX_LISTED_PHRASES],
            num_frequent=len(self._phrases),
            removed=tuple(
                {"teacher": teacher, "phrase": phrase, "num_answers": num}
                for (teacher, phrase), num in removed[:MAX_LISTED_PHRASES]
            ),
            num_removed=self._removed.total(),
            shown=tuple(self._shown),
        )

    def _is_stock(self, teacher: str, place: str, part: Part) -> bool:
        if part.phrase in self._kept:
            return False
        if part.is_sentence and part.phrase in self._extra[place]:
            return True
        # A short word such as "sure" stands in many an instruction without being asked for.
        if part.is_long and part.phrase in self._instructions:
            return False
        if place == "opening" and is_known_opening(part):
            return True
        if place == "closing" and is_known_closing(part):
            return True
        return _may_be_frequent(part) and (teacher, place, part.phrase) in self._frequent


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavourReport:
    """What de-flavouring did.

    Attributes:
        num_answers: Free-text answers that were looked at.
        num_changed: Of these, those that lost something.
        num_left: Stock phrases that stayed because the rest would not stand alone.
        frequent: Phrases that were found by counting, the most frequent first, at most 50.
        num_frequent: How many there are.
        removed: Teacher, phrase and number of answers that lost it, at most 50.
        num_removed: Removals altogether.
        shown: A few answers before and after, cut to 400 characters each.
    """

    num_answers: int = 0
    num_changed: int = 0
    num_left: int = 0
    frequent: tuple[StockPhrase, ...] = ()
    num_frequent: int = 0
    removed: tuple[Mapping[str, Any], ...] = ()
    num_removed: int = 0
    shown: tuple[Mapping[str, str], ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        document = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in document.items()}


def _may_be_frequent(part: Part) -> bool:
    """A heading or a single word is rather part of an answer's form than a phrase."""
    return part.is_sentence and part.is_long and not part.is_structure


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 1] + "…"
