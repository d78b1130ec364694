# ruff: noqa: RUF001 (full-width marks are what this is about)
"""The check ``truncated_outputs``: answers that end in the middle.

The field guide (chapter 3) tells of answers cut by a length limit: the model learned to write half sentences.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from registry.artifacts.findings import Severity
from training.engine.data.checks.answer_reading import count_words, read_json_answer
from training.engine.data.checks.check import Check, CheckKind, DataFinding
from training.engine.data.checks.id_tally import IdTally, KeyedTally, merge_ids
from training.engine.data.checks.text_style import ends_like_a_sentence, is_list
from training.engine.data.examples import Example
from training.engine.settings_rules import number

_MIN_WORDS = 5
"""Shorter answers are labels and names, which need no full stop."""
_MIN_EXAMPLES = 20
_PAIRS = {")": "(", "]": "[", "}": "{", "）": "（", "】": "【", "》": "《", "」": "「", "』": "『"}
_OPENING = frozenset(_PAIRS.values())
# ":-)" closes nothing, and "1)" numbers a line.
_FACE_OR_NUMBER = re.compile(r"[:;]-?[()\[\]]|(?:^|\n)[ \t]{0,8}[0-9a-zA-Z]{1,3}[)）]")
_CODE = re.compile(r"```.{0,20000}?```|`[^`\n]{0,200}`", re.DOTALL)
# Words that no sentence ends with; "of", "to", "in" and 的 do end some ("log in", 目的).
_DANGLING = re.compile(
    r"(?:[,，、；]|(?<![A-Za-z])(?:and|or|but|because|which|the|an|und|oder|aber|weil)"
    r"|因为|以及|并且|而且|但是|或者)\Z",
    re.IGNORECASE,
)
# An open string is one token to the end of the text: no place is read twice.
_JSON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_CLOSED_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_LENGTH_BAND = 0.01
_MIN_PILE = 5
_MIN_PILE_FRACTION = 0.01
_MIN_CUT_CHARACTERS = 200
_MIN_PILE_RATIO = 5
_MAX_LENGTHS = 2000


class TruncatedOutputs:
    """The check at work."""

    def __init__(self, min_terminal_fraction: float) -> None:
        """Start with nothing counted; see the parameter of the kind."""
        self._min_terminal_fraction = min_terminal_fraction
        self._json_cut = IdTally()
        self._unbalanced: KeyedTally[str] = KeyedTally(len(_PAIRS) + 2)
        self._dangling = IdTally()
        self._open_ended = IdTally()
        self._num_sentences = 0
        self._lengths: dict[int, IdTally] = {}
        self._open_lengths: Counter[int] = Counter()

    def add(self, example: Example) -> None:
        """Look at the end of one answer."""
        answer = (example.answer or "").strip()
        if not answer or read_json_answer(answer) is not None:
            return
        if is_json_cut(answer):
            self._json_cut.add(example.example_id)
            return
        for mark in find_unbalanced(answer):
            self._unbalanced.add(mark, example.example_id)
        if count_words(answer) < _MIN_WORDS:
            return
        self._num_sentences += 1
        # The items of a list need no full stop.
        is_open = not ends_like_a_sentence(answer) and not is_list(answer)
        if _DANGLING.search(answer[-20:]):
            self._dangling.add(example.example_id)
        elif is_open:
            self._open_ended.add(example.example_id)
        self._count_length(len(answer), is_open, example.example_id)

    def _count_length(self, length: int, is_open: bool, example_id: str) -> None:
        """Keep only the longest answers' lengths: a limit shows at the upper end."""
        self._lengths.setdefault(length, IdTally()).add(example_id)
        self._open_lengths[length] += is_open
        if len(self._lengths) > 2 * _MAX_LENGTHS:
            for short in sorted(self._lengths)[:-_MAX_LENGTHS]:
                del self._lengths[short], self._open_lengths[short]

    def findings(self) -> tuple[DataFinding, ...]:
        """Return what ends in the middle, JSON first."""
        return (
            *self._judge_json(),
            *self._judge_length_limit(),
            *self._judge_dangling(),
            *self._judge_unbalanced(),
            *self._judge_open_ended(),
        )

    def _judge_json(self) -> list[DataFinding]:
        if not self._json_cut.count:
            return []
        message = f"{self._json_cut.count} answers begin as JSON and end before it does"
        return [_make("json-cut-off", Severity.ERROR, message, self._json_cut)]

    def _judge_dangling(self) -> list[DataFinding]:
        if not self._dangling.count:
            return []
        message = f"{self._dangling.count} answers end with a comma or a word that wants another"
        return [_make("ends-in-mid-sentence", Severity.WARNING, message, self._dangling)]

    def _judge_unbalanced(self) -> list[DataFinding]:
        return [
            _make(
                "unbalanced-mark",
                Severity.WARNING,
                f"{tally.count} answers open {mark} and do not close it, or the other way round",
                tally,
            )
            for mark, tally in self._unbalanced.most_common()
        ]

    def _judge_open_ended(self) -> list[DataFinding]:
        if self._num_sentences < _MIN_EXAMPLES or not self._open_ended.count:
            return []
        fraction = 1 - (self._open_ended.count + self._dangling.count) / self._num_sentences
        if fraction < self._min_terminal_fraction:
            return []
        message = (
            f"{self._open_ended.count} answers have no mark at their end, {fraction:.0%} of all have one"
        )
        return [_make("no-final-mark", Severity.WARNING, message, self._open_ended)]

    def _judge_length_limit(self) -> list[DataFinding]:
        """Find answers that pile up at the greatest length, most of them without an end."""
        if self._num_sentences < _MIN_EXAMPLES:
            return []
        longest = max(self._lengths)
        low, lower = longest * (1 - _LENGTH_BAND), longest * (1 - 2 * _LENGTH_BAND)
        pile = [length for length in sorted(self._lengths) if length >= low]
        num_pile = sum(self._lengths[length].count for length in pile)
        num_open = sum(self._open_lengths[length] for length in pile)
        num_below = sum(tally.count for length, tally in self._lengths.items() if lower <= length < low)
        is_pile = num_pile >= max(_MIN_PILE, _MIN_PILE_FRACTION * self._num_sentences)
        is_cut = num_pile >= _MIN_PILE_RATIO * max(1, num_below) and 2 * num_open >= num_pile
        if longest < _MIN_CUT_CHARACTERS or not is_pile or not is_cut:
            return []
        tally = IdTally(num_pile, list(merge_ids(self._lengths[length] for length in pile)))
        message = (
            f"{num_pile} answers lie within 1 % of the greatest length, {longest} characters, {num_open} of "
            f"them without an end; {num_below} lie in the 1 % below: a limit on length has cut them"
        )
        return [_make("cut-at-one-length", Severity.WARNING, message, tally)]


def is_json_cut(answer: str) -> bool:
    """Return whether a text begins as a JSON object or array, is none, and has brackets that stay open."""
    if not re.match(r"\{\s*(?:\"|\Z)|\[\s*(?:[\[{\"]|\Z)", answer):
        return False
    num_open = 0
    for part in _JSON_TOKEN.findall(answer):
        if part[0] in "{}[]":
            num_open += 1 if part in "{[" else -1
        elif not _CLOSED_STRING.fullmatch(part):
            return True
    return num_open > 0


def find_unbalanced(answer: str) -> list[str]:
    """Return the marks that stay open or close nothing in an answer: brackets, code fences, double quotes."""
    found = ["```"] if answer.count("```") % 2 else []
    prose = _FACE_OR_NUMBER.sub("", _CODE.sub("", answer))
    counts = Counter(char for char in prose if char in _OPENING or char in _PAIRS)
    found += [opening for closing, opening in _PAIRS.items() if counts[opening] != counts[closing]]
    # A straight quote also means inches; only with letters around is it a quotation that should close.
    if prose.count('"') % 2 and not re.search(r"[0-9]\"", prose):
        found.append('"')
    if prose.count("\u201c") != prose.count("\u201d") and "\u201d" not in prose:
        found.append("\u201c")
    return found


def _make(code: str, severity: Severity, message: str, tally: IdTally) -> DataFinding:
    return DataFinding(
        code=code,
        severity=severity,
        message=message,
        where="answer",
        remedy="Look at the examples; make the answers anew with a higher limit, or drop them. A model "
        "trained on half answers stops in the middle.",
        num_examples=tally.count,
        example_ids=tuple(tally.ids),
        source="MISSION C3(2), T5",
    )


def _build(parameters: Mapping[str, Any]) -> Check:
    return TruncatedOutputs(parameters["min_terminal_fraction"])


KIND = CheckKind(
    name="truncated_outputs",
    version=1,
    summary="Finds answers that end in the middle: cut JSON, open marks, one greatest length, no final mark.",
    source="MISSION C3(2), T5",
    rules={"min_terminal_fraction": number(0.5, 1)},
    defaults={"min_terminal_fraction": 0.9},
    build=_build,
)
