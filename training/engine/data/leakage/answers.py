"""Answers that give themselves away: in their own input, or word for word in the training data."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from registry.artifacts.findings import Severity
from training.engine.data.checks.check import MAX_LISTED_IDS, DataFinding
from training.engine.data.examples import Example
from training.engine.data.near_duplicates.answers import read_answer_fields
from training.engine.data.near_duplicates.shingle_sets import hash_text
from training.engine.data.shingles import normalise, split_units

MIN_COPIED_CHARACTERS: Final = 20
"""Shorter free-text answers (a name, a letter of a choice) stand in their input by nature."""
MIN_MEMORISABLE_WORDS: Final = 8
MIN_MEMORISABLE_LETTERS: Final = 16
"""Of a Chinese, Japanese or Korean answer: two letters for a word."""
MAX_LISTED_ANSWERS: Final = 20
MAX_TEXTS_PER_ANSWER: Final = 100
"""Of a JSON answer only so many texts are looked for: each costs one search through the input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAnswers:
    """How answers of one set stand in the inputs of the same examples, both normalised.

    Attributes:
        name: Of the set.
        num_free_text: Answers that are not empty and no JSON object or list.
        num_in_input: Of these, those that stand in their input and are not all of it (an answer that equals
            its input is a "nothing to change" example).
        copied_ids: The first few of those with at least 20 characters.
        num_copied: How many those are.
        num_json_texts: Texts inside JSON answers, of each answer the first 100.
        num_json_texts_in_input: Of these, those that stand in the input: extraction, which is no leak.
    """

    name: str
    num_free_text: int
    num_in_input: int
    copied_ids: tuple[str, ...]
    num_copied: int
    num_json_texts: int
    num_json_texts_in_input: int

    @property
    def fraction_in_input(self) -> float | None:
        """Part of the free-text answers that stand in their input, 0-1; None without any."""
        return self.num_in_input / self.num_free_text if self.num_free_text else None

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            **asdict(self),
            "copied_ids": list(self.copied_ids),
            "fraction_in_input": self.fraction_in_input,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorisableAnswer:
    """An evaluation answer of at least 8 words that is also a training answer, word for word.

    Attributes:
        train_id: First training example with it.
        role: Name of the evaluation set.
        example_id: Evaluation example.
    """

    train_id: str
    role: str
    example_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReport:
    """What was found about answers.

    Attributes:
        sets: Each set that was seen.
        num_memorisable: Evaluation examples whose answer is a training answer.
        memorisable: The first 20.
    """

    sets: tuple[SetAnswers, ...]
    num_memorisable: int
    memorisable: tuple[MemorisableAnswer, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            "sets": [item.to_json() for item in self.sets],
            "num_memorisable": self.num_memorisable,
            "memorisable": [asdict(item) for item in self.memorisable],
        }

    def findings(self) -> tuple[DataFinding, ...]:
        """Return what a person should look at."""
        findings = [_finding_of_copies(item) for item in self.sets if item.num_copied]
        if self.num_memorisable:
            findings.append(
                DataFinding(
                    code="memorisable-answer",
                    severity=Severity.WARNING,
                    message=f"{self.num_memorisable} evaluation answers of at least {MIN_MEMORISABLE_WORDS} "
                    "words are training answers word for word: learned by heart, they are right.",
                    remedy="Take these examples out of the evaluation set or the training data.",
                    num_examples=self.num_memorisable,
                    example_ids=tuple(item.example_id for item in self.memorisable[:MAX_LISTED_IDS]),
                    source="MISSION C6",
                )
            )
        return tuple(findings)


class SetAnswersCounter:
    """Counts the answers of one set."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._num_free_text = self._num_in_input = self._num_copied = 0
        self._num_json_texts = self._num_json_texts_in_input = 0
        self._copied_ids: list[str] = []

    def add(self, example: Example) -> None:
        """Take one example; without an answer it counts nowhere."""
        text = normalise(example.input_text)
        fields = read_answer_fields(example.answer)
        if fields is not None:
            texts = [value[1:-1] for value in fields.values() if value.startswith('"')]
            leaves = [normalise(value) for value in texts[:MAX_TEXTS_PER_ANSWER]]
            self._num_json_texts += len(leaves)
            self._num_json_texts_in_input += sum(leaf in text for leaf in leaves)
            return
        answer = normalise(example.answer or "")
        self._num_free_text += bool(answer)
        if answer and answer != text and answer in text:
            self._num_in_input += 1
            if len(answer) >= MIN_COPIED_CHARACTERS:
                self._num_copied += 1
                if len(self._copied_ids) < MAX_LISTED_IDS:
                    self._copied_ids.append(example.example_id)

    def result(self) -> SetAnswers:
        """Return what was counted."""
        return SetAnswers(
            name=self._name,
            num_free_text=self._num_free_text,
            num_in_input=self._num_in_input,
            copied_ids=tuple(self._copied_ids),
            num_copied=self._num_copied,
            num_json_texts=self._num_json_texts,
            num_json_texts_in_input=self._num_json_texts_in_input,
        )


class MemorisableAnswers:
    """Looks for training answers among the answers of evaluation sets, whose hashes and ids it holds."""

    def __init__(self) -> None:
        self._held: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
        self._found: dict[int, str] = {}

    def hold(self, role: str, example: Example) -> None:
        """Take one evaluation example."""
        key = _hash_long_answer(example)
        if key is not None:
            self._held[key].append((role, example.example_id))

    def see(self, example: Example) -> None:
        """Take one training example."""
        key = _hash_long_answer(example) if self._held else None
        if key is not None and key in self._held:
            self._found.setdefault(key, example.example_id)

    def result(self, sets: Iterable[SetAnswers]) -> AnswerReport:
        """Return what was found, in the order of the evaluation examples."""
        found = [
            MemorisableAnswer(train_id=self._found[key], role=role, example_id=example_id)
            for key, examples in self._held.items()
            if key in self._found
            for role, example_id in examples
        ]
        return AnswerReport(
            sets=tuple(sets), num_memorisable=len(found), memorisable=tuple(found[:MAX_LISTED_ANSWERS])
        )


def _hash_long_answer(example: Example) -> int | None:
    """Return the hash of a free-text answer that nobody writes twice by chance; None for others."""
    if read_answer_fields(example.answer) is not None:
        return None
    answer = normalise(example.answer or "")
    units = split_units(answer)
    is_long = len(units.words) >= MIN_MEMORISABLE_WORDS or len(units.letters) >= MIN_MEMORISABLE_LETTERS
    return hash_text(answer) if is_long else None


def _finding_of_copies(item: SetAnswers) -> DataFinding:
    return DataFinding(
        code="answer-in-input",
        severity=Severity.WARNING,
        message=f"{item.num_copied} of {item.num_free_text} free-text answers of {item.name} with at least "
        f"{MIN_COPIED_CHARACTERS} characters stand word for word in their own input",
        where=item.name,
        remedy="Look whether the input was built from the answer; if quoting is the task, nothing is wrong.",
        num_examples=item.num_copied,
        example_ids=item.copied_ids,
        source="MISSION C6",
    )
