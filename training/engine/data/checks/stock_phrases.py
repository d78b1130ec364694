"""The check ``stock_phrases``: what a teacher model adds to every answer (MISSION C5, "de-flavouring")."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from registry.artifacts.findings import Severity, shown
from training.engine.data.checks.answer_reading import count_words, has_cjk, read_json_answer
from training.engine.data.checks.check import Check, CheckKind, DataFinding
from training.engine.data.checks.id_tally import IdTally
from training.engine.data.checks.teacher_phrases import TEACHER_PHRASES, TeacherPhrase
from training.engine.data.examples import Example
from training.engine.data.shingles import normalise
from training.engine.settings_rules import count, number

_MIN_WORDS = 8
"""Shorter answers are labels and names: what begins alike there is the matter itself."""
_WORD_COUNTS = range(3, 7)
_CHARACTER_COUNTS = range(4, 9)
_EDGE_CHARACTERS = 200
_MAX_INPUT_CHARACTERS = 20_000
_REQUIRED_FRACTION = 0.9
"""A phrase of nearly all answers is the form that the task asks for."""
_MIN_KNOWN_FRACTION = 0.01
_MIN_KNOWN = 3
_SAME_PHRASE_FRACTION = 0.75
_PRUNE_PERIOD = 1000
_MIN_DIFFERENT_ANSWERS = 5
"""Fewer answers that come again and again are labels, not a habit of beginning."""
_FINAL_MARKS = "\u3002.!?~ "
"""As they are after NFKC."""
_UNIT = re.compile(r"\w+(?:['\u2019-]\w+)*")
_REMEDY = (
    "Take the phrase out of the answers, or forbid it in the prompt of the teacher and make them anew: the "
    "model learns to say it every time."
)


class _FrequentPhrases:
    """Counts phrases in bounded memory.

    Lossy counting (Manku and Motwani, "Approximate frequency counts over data streams", 2002) with an error
    of at most one in 1000 answers: a phrase in 5 % of them is never lost.
    """

    def __init__(self) -> None:
        self._tallies: dict[str, tuple[IdTally, int]] = {}
        self._answers: dict[str, set[bytes]] = {}
        self._num_answers = 0

    def add(self, phrases: list[str], answer_digest: bytes, example_id: str) -> None:
        period = self._num_answers // _PRUNE_PERIOD
        for phrase in dict.fromkeys(phrases):
            if phrase not in self._tallies:
                self._tallies[phrase] = (IdTally(), period)
                self._answers[phrase] = set()
            self._tallies[phrase][0].add(example_id)
            if len(self._answers[phrase]) < _MIN_DIFFERENT_ANSWERS:
                self._answers[phrase].add(answer_digest)
        self._num_answers += 1
        if self._num_answers % _PRUNE_PERIOD == 0:
            self._tallies = {
                phrase: (tally, missed)
                for phrase, (tally, missed) in self._tallies.items()
                if tally.count + missed > period + 1
            }
            self._answers = {phrase: self._answers[phrase] for phrase in self._tallies}

    def list_frequent(self, min_count: float) -> list[tuple[str, IdTally]]:
        """Return phrases of at least that count, without those that are only a part of a longer one."""
        frequent = {
            phrase: tally
            for phrase, (tally, _) in self._tallies.items()
            if tally.count >= min_count and len(self._answers[phrase]) >= _MIN_DIFFERENT_ANSWERS
        }
        return sorted(
            (
                (phrase, tally)
                for phrase, tally in frequent.items()
                if not any(
                    other != phrase
                    and phrase in other
                    and longer.count >= _SAME_PHRASE_FRACTION * tally.count
                    for other, longer in frequent.items()
                )
            ),
            key=lambda item: (-item[1].count, item[0]),
        )


class StockPhrases:
    """The check at work."""

    def __init__(self, min_fraction: float, min_examples: int) -> None:
        """Start with nothing counted; see the parameters of the kind."""
        self._min_fraction = min_fraction
        self._min_examples = min_examples
        self._num_texts = 0
        self._known: dict[str, IdTally] = {}
        self._openings = _FrequentPhrases()
        self._closings = _FrequentPhrases()

    def add(self, example: Example) -> None:
        """Look at the start and the end of one free-text answer."""
        answer = (example.answer or "").strip()
        if not answer or count_words(answer[:_MAX_INPUT_CHARACTERS]) < _MIN_WORDS:
            return
        if read_json_answer(answer) is not None:
            return
        self._num_texts += 1
        for phrase in TEACHER_PHRASES:
            if phrase.is_in(answer[:_MAX_INPUT_CHARACTERS] if phrase.place != "end" else answer):
                self._known.setdefault(phrase.name, IdTally()).add(example.example_id)
        digest = hashlib.blake2b(answer.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        source = _squeeze(example.input_text[:_MAX_INPUT_CHARACTERS])
        for phrases, tallies in (
            (list_openings(answer), self._openings),
            (list_closings(answer), self._closings),
        ):
            # What the input says is the matter, not a habit.
            habits = [item for item in phrases if _squeeze(item) not in source]
            tallies.add(habits, digest, example.example_id)

    def findings(self) -> tuple[DataFinding, ...]:
        """Return known phrases, then frequent openings and closings, each the most frequent first."""
        if not self._num_texts:
            return ()
        known = [finding for phrase in TEACHER_PHRASES for finding in self._judge_known(phrase)]
        known.sort(key=lambda item: -item.num_examples)
        min_count = max(self._min_examples, self._min_fraction * self._num_texts)
        frequent = [
            self._judge_frequent(place, phrase, tally)
            for place, tallies in (("opening", self._openings), ("closing", self._closings))
            for phrase, tally in tallies.list_frequent(min_count)
        ]
        return tuple(sorted([*known, *frequent], key=lambda item: item.severity != Severity.WARNING))

    def _judge_known(self, phrase: TeacherPhrase) -> list[DataFinding]:
        tally = self._known.get(phrase.name, IdTally())
        fraction = tally.count / self._num_texts
        is_frequent = tally.count >= _MIN_KNOWN and fraction >= _MIN_KNOWN_FRACTION
        if not tally.count or not (is_frequent or phrase.is_disclaimer):
            return []
        return [
            DataFinding(
                code="teacher-disclaimer" if phrase.is_disclaimer else "teacher-phrase",
                severity=Severity.WARNING,
                message=f"{tally.count} of {self._num_texts} free-text answers ({fraction:.1%}) have the "
                f"assistant's phrase “{phrase.name}”",
                where=f"answer ({phrase.place})",
                remedy=_REMEDY,
                num_examples=tally.count,
                example_ids=tuple(tally.ids),
                source="MISSION C5",
            )
        ]

    def _judge_frequent(self, place: str, phrase: str, tally: IdTally) -> DataFinding:
        fraction = tally.count / self._num_texts
        is_required = fraction >= _REQUIRED_FRACTION
        message = f"{tally.count} of {self._num_texts} free-text answers ({fraction:.0%}) have the {place}"
        return DataFinding(
            code=f"{'required' if is_required else 'stock'}-{place}",
            severity=Severity.INFO if is_required else Severity.WARNING,
            message=f"{message} “{shown(phrase)}”" + (", taken for the required form" if is_required else ""),
            where=f"answer ({place})",
            remedy="Nothing, when the task asks for it." if is_required else _REMEDY,
            num_examples=tally.count,
            example_ids=tuple(tally.ids),
            source="MISSION C5",
        )


def list_openings(answer: str) -> list[str]:
    """Return the first 3 to 6 words of an answer, or its first 4 to 8 characters when it is Chinese."""
    head = normalise(answer[:_EDGE_CHARACTERS])
    if has_cjk(head[: max(_CHARACTER_COUNTS)]):
        return [head[:n] for n in _CHARACTER_COUNTS if len(head) > n]
    words = _UNIT.findall(head)
    return [" ".join(words[:n]) for n in _WORD_COUNTS if len(words) > n]


def list_closings(answer: str) -> list[str]:
    """Return the last 3 to 6 words, or the last 4 to 8 characters in front of the final mark."""
    tail = normalise(answer[-_EDGE_CHARACTERS:])
    if has_cjk(tail[-max(_CHARACTER_COUNTS) :]):
        # With its mark a name of three characters would be a habit of ending.
        tail = tail.rstrip(_FINAL_MARKS)
        return [tail[-n:] for n in _CHARACTER_COUNTS if len(tail) > n]
    words = _UNIT.findall(tail)
    return [" ".join(words[-n:]) for n in _WORD_COUNTS if len(words) > n]


def _squeeze(text: str) -> str:
    return " ".join(_UNIT.findall(normalise(text)))


def _build(parameters: Mapping[str, Any]) -> Check:
    return StockPhrases(parameters["min_fraction"], parameters["min_examples"])


KIND = CheckKind(
    name="stock_phrases",
    version=1,
    summary="Finds openings and closings that many free-text answers share, and known phrases of assistants.",
    source="MISSION C5",
    rules={"min_fraction": number(0, 1, low_open=True), "min_examples": count(2)},
    defaults={"min_fraction": 0.05, "min_examples": 5},
    build=_build,
)
