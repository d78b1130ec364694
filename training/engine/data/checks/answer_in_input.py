"""The check ``answer_in_input``: free-text answers that stand word for word in the input.

A copied answer teaches copying. That is wanted in a revision task, where about a tenth of the examples should
need no change (MISSION C4), and a fault elsewhere. Values of JSON answers are extraction and are not looked
at.
"""

from collections.abc import Mapping
from typing import Any

from registry.artifacts.findings import Severity
from training.engine.data.checks.answer_reading import count_words, read_json_answer
from training.engine.data.checks.check import Check, CheckKind, DataFinding
from training.engine.data.checks.id_tally import IdTally
from training.engine.data.examples import Example
from training.engine.data.shingles import jaccard, make_shingles, normalise
from training.engine.settings_rules import count, number

_MIN_REVISION_SIMILARITY = 0.3
"""Of input and answer, by shingles: from here on the answer is a revision of the input, not a new text."""
_MIN_REVISION_FRACTION = 0.5
_UNCHANGED_LOW, _UNCHANGED_HIGH = 0.05, 0.2
"""Around the tenth of MISSION C4."""
_MIN_EXAMPLES = 20
_MAX_COMPARED_CHARACTERS = 20_000


class AnswerInInput:
    """The check at work."""

    def __init__(self, min_words: int, max_copied_fraction: float) -> None:
        """Start with nothing counted; see the parameters of the kind."""
        self._min_words = min_words
        self._max_copied_fraction = max_copied_fraction
        self._num_texts = 0
        self._num_revisions = 0
        self._copied = IdTally()
        self._unchanged = IdTally()

    def add(self, example: Example) -> None:
        """Compare one answer with its input."""
        answer = example.answer
        if (
            example.is_general
            or answer is None
            or count_words(answer) < self._min_words
            or read_json_answer(answer) is not None
        ):
            return
        self._num_texts += 1
        text, source = normalise(answer), normalise(example.input_text)
        if text == source or any(
            text == normalise(message.content) for message in example.messages if message.role == "user"
        ):
            self._unchanged.add(example.example_id)
            self._num_revisions += 1
        elif text in source:
            self._copied.add(example.example_id)
        elif _is_revision(text, source):
            self._num_revisions += 1

    def findings(self) -> tuple[DataFinding, ...]:
        """Return the share of copied answers and of examples where nothing is to change."""
        found = [*self._judge_copied(), *self._judge_unchanged()]
        return tuple(sorted(found, key=lambda item: item.severity != Severity.WARNING))

    def _judge_copied(self) -> list[DataFinding]:
        if not self._copied.count:
            return []
        fraction = self._copied.count / self._num_texts
        is_much = fraction > self._max_copied_fraction and self._num_texts >= _MIN_EXAMPLES
        return [
            DataFinding(
                code="answer-copied",
                severity=Severity.WARNING if is_much else Severity.INFO,
                message=f"{self._copied.count} of {self._num_texts} free-text answers ({fraction:.0%}) stand "
                "word for word in their input",
                where="answer",
                remedy="Right for extractive questions. Else look at the examples: the answer may have "
                "leaked into the input.",
                num_examples=self._copied.count,
                example_ids=tuple(self._copied.ids),
                source="MISSION C2",
            )
        ]

    def _judge_unchanged(self) -> list[DataFinding]:
        if self._num_texts < _MIN_EXAMPLES:
            return []
        fraction = self._unchanged.count / self._num_texts
        is_revision = self._num_revisions >= _MIN_REVISION_FRACTION * self._num_texts
        if not self._unchanged.count and not is_revision:
            return []
        if fraction > _UNCHANGED_HIGH:
            severity, remedy = Severity.WARNING, "Take some out: the model learns to change nothing."
        elif is_revision and fraction < _UNCHANGED_LOW:
            severity = Severity.INFO
            remedy = (
                "Add inputs that are right already, with themselves as answers: else the model changes all."
            )
        else:
            severity, remedy = Severity.INFO, "About one in ten is right for a task of revision."
        return [
            DataFinding(
                code="nothing-to-change",
                severity=severity,
                message=f"{self._unchanged.count} of {self._num_texts} free-text answers ({fraction:.0%}) "
                "equal their input; a task of revision should have about 10 %",
                where="answer",
                remedy=remedy,
                num_examples=self._unchanged.count,
                example_ids=tuple(self._unchanged.ids),
                source="MISSION C4",
            )
        ]


def _is_revision(text: str, source: str) -> bool:
    left, right = text[:_MAX_COMPARED_CHARACTERS], source[:_MAX_COMPARED_CHARACTERS]
    return jaccard(make_shingles(left), make_shingles(right)) >= _MIN_REVISION_SIMILARITY


def _build(parameters: Mapping[str, Any]) -> Check:
    return AnswerInInput(parameters["min_words"], parameters["max_copied_fraction"])


KIND = CheckKind(
    name="answer_in_input",
    version=1,
    summary="Counts free-text answers that stand in their input, and those that change nothing.",
    source="MISSION C2, C4",
    rules={"min_words": count(1), "max_copied_fraction": number(0, 1)},
    defaults={"min_words": 8, "max_copied_fraction": 0.2},
    build=_build,
)
