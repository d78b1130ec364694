"""The check ``misalignment``: whether answers stand in the wrong rows (MISSION C7).

The field guide tells of a cleaning script that moved outputs by one row against inputs: "the loss came down
beautifully, and every answer was beside the point". Two signs are compared in place and moved by 1 to 10
rows: how many of an answer's words its input has, rare words weighing more, and how well the input's words
tell the labels.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from registry.artifacts.findings import Severity
from training.engine.data.checks.answer_reading import MAX_LEAVES, iterate_leaves, read_json_answer
from training.engine.data.checks.check import Check, CheckKind, DataFinding
from training.engine.data.checks.label_association import NUM_BUCKETS, LabelAssociation, make_presence
from training.engine.data.checks.shift_scores import (
    MAX_SHIFT,
    SHIFTS,
    BetterShift,
    Floats,
    RowRange,
    ShiftScores,
)
from training.engine.data.checks.text_terms import hash_term, list_terms
from training.engine.data.examples import Example

_NUM_FREQUENCY_BUCKETS = 65536
_MAX_TERMS = 400
_MAX_ANSWER_TERMS = 64
_MAX_LABEL_CHARACTERS = 60
_MIN_CHUNK, _MAX_CHUNK = 16, 256
_ALL_ROWS = 20_000
_SAMPLE_PERIOD, _SAMPLE_ROWS = 10_000, 1_000
"""Up to 20,000 rows all are compared, behind that the first 1,000 of every 10,000."""
_SAME_INPUT = 0.8
"""Rows whose inputs share this part of their words are one input asked twice, or a conversation going on."""
_MIN_UNRELATED_ROWS = 300
_MAX_UNRELATED_Z = 3.0


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    example_id: str
    terms: frozenset[str]
    buckets: tuple[int, ...]
    answer_terms: tuple[tuple[str, float], ...]
    answer_weight: float
    labels: Mapping[int, int]


class _Stream:
    """The comparison over one stream of rows: those of the task, or general instruction data."""

    def __init__(self) -> None:
        self.words = ShiftScores()
        self.labels = ShiftScores()
        self.num_rows = 0
        self.num_compared = 0
        self._association = LabelAssociation()
        self._frequency: Counter[int] = Counter()
        self._rows: list[_Row] = []
        self._next = 0

    def add(self, example: Example) -> None:
        self.num_rows += 1
        is_compared = self.num_rows <= _ALL_ROWS or (self.num_rows - 1) % _SAMPLE_PERIOD < _SAMPLE_ROWS
        if not is_compared:
            self.finish()
            return
        self._rows.append(self._read(example))
        size = min(_MAX_CHUNK, max(_MIN_CHUNK, self.num_compared // 4))
        if len(self._rows) >= self._next + size + MAX_SHIFT:
            self._compare(self._next, self._next + size)

    def finish(self) -> None:
        """Compare the rows that waited for followers and forget all: what comes next is no neighbour."""
        if self._next < len(self._rows):
            self._compare(self._next, len(self._rows))
        self._rows, self._next = [], 0

    def _read(self, example: Example) -> _Row:
        terms = list(list_terms(example.input_text))[:_MAX_TERMS]
        self._frequency.update(hash_term(term, _NUM_FREQUENCY_BUCKETS) for term in terms)
        text, labels = _read_answer(example.answer or "")
        weighed = [(term, self._weigh(term)) for term in list(list_terms(text))[:_MAX_ANSWER_TERMS]]
        return _Row(
            number=self.num_rows,
            example_id=example.example_id,
            terms=frozenset(terms),
            buckets=tuple(dict.fromkeys(hash_term(term, NUM_BUCKETS) for term in terms)),
            answer_terms=tuple((term, weight) for term, weight in weighed if weight > 0),
            answer_weight=sum(weight for _, weight in weighed),
            labels=self._association.number_labels(labels),
        )

    def _compare(self, start: int, stop: int) -> None:
        rows = self._rows
        same = [self._list_same(place) for place in range(start, stop)]
        presence = make_presence([rows[place].buckets for place in range(start, stop)])
        scores, baselines = self._association.judge_and_learn(presence, [row.labels for row in rows], start)
        zeros = np.zeros(len(SHIFTS))
        for place in range(start, stop):
            number = place - start
            words = self._score_words(place)
            words[same[number]] = np.nan
            scores[number, same[number]] = np.nan
            row = rows[place]
            self.words.add(row.number, row.example_id, words, zeros)
            self.labels.add(row.number, row.example_id, scores[number], np.nan_to_num(baselines[number]))
        self.num_compared += stop - start
        # The next rows look back by the greatest shift only.
        kept = max(0, stop - MAX_SHIFT)
        self._rows, self._next = rows[kept:], stop - kept

    def _list_same(self, place: int) -> list[int]:
        """Return the numbers of the shifts that lead to nearly the same input."""
        terms = self._rows[place].terms
        same = []
        for number, shift in enumerate(SHIFTS):
            other = place + shift
            if shift == 0 or not 0 <= other < len(self._rows):
                continue
            others = self._rows[other].terms
            smaller = min(len(terms), len(others))
            if not smaller or len(terms & others) >= _SAME_INPUT * smaller:
                same.append(number)
        return same

    def _score_words(self, place: int) -> Floats:
        """Return, for each shift, the part of the answer's weight of words that the input has."""
        scores = np.full(len(SHIFTS), np.nan)
        terms = self._rows[place].terms
        for number, shift in enumerate(SHIFTS):
            other = place + shift
            if terms and 0 <= other < len(self._rows) and self._rows[other].answer_weight > 0:
                row = self._rows[other]
                shared = [weight for term, weight in row.answer_terms if term in terms]
                scores[number] = sum(shared) / row.answer_weight
        return scores

    def _weigh(self, term: str) -> float:
        """Return the inverse document frequency among the inputs so far, 0 for words of every second."""
        frequency = self._frequency[hash_term(term, _NUM_FREQUENCY_BUCKETS)]
        return max(0.0, math.log((self.num_rows + 1) / (2 * frequency + 1)))


class Misalignment:
    """The check at work."""

    def __init__(self) -> None:
        """Start with no rows."""
        self._streams = {False: _Stream(), True: _Stream()}

    def add(self, example: Example) -> None:
        """Take the next row; rows of general instruction data are neighbours of each other only."""
        if example.answer is not None:
            self._streams[example.is_general].add(example)

    def findings(self) -> tuple[DataFinding, ...]:
        """Return at most one finding for the task and one for general instruction data."""
        return tuple(
            finding
            for is_general, stream in self._streams.items()
            for finding in _judge(stream, "general instruction data" if is_general else "")
        )


def _read_answer(answer: str) -> tuple[str, dict[str, str]]:
    """Return the texts of an answer as one, and its values that may be labels, by their paths."""
    parsed = read_json_answer(answer)
    if parsed is None:
        is_short = 0 < len(answer.strip()) <= _MAX_LABEL_CHARACTERS
        return answer, {"answer": answer.strip()} if is_short else {}
    texts, labels = [], {}
    for number, (path, value) in enumerate(iterate_leaves(parsed.value)):
        if number >= MAX_LEAVES:
            break
        text = value if isinstance(value, str) else json.dumps(value)
        texts.append(text)
        if "[]" not in path and len(text) <= _MAX_LABEL_CHARACTERS:
            labels[path] = text
    return "\n".join(texts), labels


def _judge(stream: _Stream, where: str) -> list[DataFinding]:
    stream.finish()
    signs = (
        ("the answer's words that the input has", stream.words),
        ("the labels that the input's words tell", stream.labels),
    )
    better = [(name, found) for name, scores in signs if (found := scores.find_better_shift())]
    if better:
        name, found = max(better, key=lambda item: item[1].z)
        return [_make_shift(name, found, stream.num_rows, where)]
    for name, scores in signs:
        unrelated = scores.find_unrelated_rows()
        if unrelated is not None:
            return [_make_unrelated(name, unrelated, where)]
    num_rows = max(scores.num_rows for _, scores in signs)
    is_related = any(scores.compute_own_z() >= _MAX_UNRELATED_Z for _, scores in signs)
    return [] if is_related or num_rows < _MIN_UNRELATED_ROWS else [_make_no_relation(num_rows, where)]


def _make_shift(name: str, found: BetterShift, num_rows: int, where: str) -> DataFinding:
    direction, opposite = ("above", "down") if found.shift < 0 else ("below", "up")
    distance = f"{abs(found.shift)} row{'' if abs(found.shift) == 1 else 's'}"
    is_whole = found.rows.first == 1 and found.rows.last >= num_rows - 1
    part = "all rows" if is_whole else f"rows {found.rows.first} to {found.rows.last}"
    guessing = f", guessing has {found.baseline:.2f}" if found.baseline else ""
    return DataFinding(
        code="answers-shifted",
        severity=Severity.ERROR,
        message=f"in {part} the answers stand {distance} {direction} their inputs: of {name}, the answer "
        f"{distance} {direction} has {found.score:.2f} and the row's own {found.own_score:.2f}{guessing} "
        f"(paired over {found.num_rows} rows, z = {found.z:.1f})",
        where=where,
        remedy=f"Look at a few examples, move the answers {opposite} by {distance}, and repair what "
        "joined inputs and answers by position.",
        num_examples=found.rows.last - found.rows.first + 1,
        example_ids=found.rows.example_ids,
        source="MISSION C7",
    )


def _make_unrelated(name: str, rows: RowRange, where: str) -> DataFinding:
    return DataFinding(
        code="answers-unrelated",
        severity=Severity.WARNING,
        message=f"in rows {rows.first} to {rows.last} the answers fit their inputs no better than those of "
        f"other rows do, by {name}, though they do in the rest",
        where=where,
        remedy="Look at these examples: inputs and answers may have been joined wrongly there.",
        num_examples=rows.last - rows.first + 1,
        example_ids=rows.example_ids,
        source="MISSION C7",
    )


def _make_no_relation(num_rows: int, where: str) -> DataFinding:
    return DataFinding(
        code="no-relation-measured",
        severity=Severity.WARNING,
        message=f"over {num_rows} rows neither words nor labels of the answers fit their own inputs better "
        "than those of the rows around do",
        where=where,
        remedy="Look at a few examples: the answers may be shuffled, or moved by more than "
        f"{MAX_SHIFT} rows. Right for tasks whose answers share no words with their inputs, such "
        "as arithmetic.",
        num_examples=num_rows,
        source="MISSION C7",
    )


def _build(parameters: Mapping[str, Any]) -> Check:
    return Misalignment()


KIND = CheckKind(
    name="misalignment",
    version=1,
    summary="Finds answers that stand one to ten rows away from their inputs, in all rows or in a stretch.",
    source="MISSION C7",
    build=_build,
    needs_source_order=True,
)
