"""The leakage part of an evaluation report and of a preparation."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from training.engine.data.examples import Example
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.data.leakage.answers import AnswerReport, MemorisableAnswers, SetAnswersCounter
from training.engine.data.leakage.overlaps import HeldSets, InputBatch, LeakageMatrix, StreamedSet
from training.engine.data.near_duplicates import NEAR_DUPLICATE_SIMILARITY
from training.engine.data.near_duplicates.shingle_sets import BATCH_CHARACTERS, BATCH_TEXTS

EVALUATION_ROLES: Final = ("holdout", "ood", "regression", "canary")
TRAINING: Final = "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedPair:
    """A training example and an evaluation example that ask the same.

    Attributes:
        train_id: Id of the training example.
        role: Name of the evaluation set.
        example_id: Id of the evaluation example.
        kind: "exact" when the normalised inputs are equal, else "near".
        similarity: Jaccard similarity of the inputs' shingles, 0.85-1.
    """

    train_id: str
    role: str
    example_id: str
    kind: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageReport:
    """What training and evaluation sets share.

    Attributes:
        is_training_known: Whether training data were compared; without them nothing is known of leaks.
        pairs: Training against evaluation, at most three for each evaluation example, the most similar
            first, exact ones alone where there are any. The gate's rule decides by these.
        matrix: Training with each evaluation set, then the evaluation sets among each other.
        answers: Answers that stand in inputs or in the training data.
    """

    is_training_known: bool
    pairs: tuple[LeakedPair, ...]
    matrix: LeakageMatrix
    answers: AnswerReport

    def to_json(self) -> dict[str, Any]:
        """Return the ``leakage`` value of an evaluation report."""
        return {
            "status": "checked" if self.is_training_known else "unknown",
            "pairs": [asdict(pair) for pair in self.pairs],
            "matrix": self.matrix.to_json(),
            "answers": self.answers.to_json(),
        }


def find_leakage(
    training: Iterable[Example] | None,
    evaluation_sets: Mapping[str, Iterable[Example]],
    *,
    threshold: float = NEAR_DUPLICATE_SIMILARITY,
) -> LeakageReport:
    """Compare what users say in each set with what they say in each other set.

    System messages and answers are left out: they are alike on purpose. Empty inputs are left out too: one
    empty input is the same as another without anything having leaked.

    Memory: of evaluation examples ids, hashes and shingles (see ``near_duplicates``); training examples are
    read once, in batches, and not held.

    Args:
        training: All training examples, general ones included; None when they are not known.
        evaluation_sets: Examples by role or name; each is read once.
        threshold: Smallest similarity of a near duplicate, above 0 and at most 1.
    """
    memorisable = MemorisableAnswers()
    counters = {name: SetAnswersCounter(name) for name in evaluation_sets}

    def hold(name: str, examples: Iterable[Example]) -> Iterator[InputBatch]:
        for batch in _iterate_batches(examples):
            for example in batch:
                memorisable.hold(name, example)
                counters[name].add(example)
            yield _to_inputs(batch)

    held = HeldSets(
        {name: hold(name, examples) for name, examples in evaluation_sets.items()}, threshold=threshold
    )
    training_counter, streamed = SetAnswersCounter(TRAINING), held.start_stream(TRAINING)
    for batch in _iterate_batches(training or ()):
        for example in batch:
            memorisable.see(example)
            training_counter.add(example)
        streamed.add(_to_inputs(batch))
    is_known = training is not None
    sets = [*([training_counter] if is_known else []), *counters.values()]
    return LeakageReport(
        is_training_known=is_known,
        pairs=tuple(_list_pairs(streamed)),
        matrix=LeakageMatrix((*(streamed.overlaps() if is_known else ()), *held.compare_among_themselves())),
        answers=memorisable.result(counter.result() for counter in sets),
    )


def check_leakage(*, training_data: Path | None, suite: Path) -> dict[str, Any]:
    """Compare the files of a job: all training files with each evaluation set of a suite folder, and these
    among each other.

    Args:
        training_data: JSONL file, or folder of ``*.jsonl``; None when the training data is not known. One
            file at a time is in memory.
        suite: Folder with holdout.jsonl, ood.jsonl, regression.jsonl, canary.jsonl (those that exist are
            compared).

    Returns:
        The ``leakage`` value of an evaluation report; status "unknown" without training data, never
        "checked".

    Raises:
        DataInvalid: A file cannot be read.
    """
    training = None if training_data is None else _iterate_files(training_data)
    evaluation_sets = {
        role: read_examples(file, needs_answer=False)
        for role in EVALUATION_ROLES
        if (file := suite / f"{role}.jsonl").is_file()
    }
    return find_leakage(training, evaluation_sets).to_json()


def _iterate_files(path: Path) -> Iterator[Example]:
    for file in list_jsonl_files(path):
        yield from read_examples(file, needs_answer=False)


def _list_pairs(streamed: StreamedSet) -> Iterator[LeakedPair]:
    for role, pair in streamed.iterate_best():
        yield LeakedPair(
            train_id=pair.left_id,
            role=role,
            example_id=pair.right_id,
            kind=pair.kind,
            similarity=pair.similarity,
        )


def _iterate_batches(examples: Iterable[Example]) -> Iterator[list[Example]]:
    batch: list[Example] = []
    num_characters = 0
    for example in examples:
        batch.append(example)
        num_characters += len(example.input_text)
        if len(batch) >= BATCH_TEXTS or num_characters >= BATCH_CHARACTERS:
            yield batch
            batch, num_characters = [], 0
    if batch:
        yield batch


def _to_inputs(batch: list[Example]) -> InputBatch:
    return InputBatch([item.example_id for item in batch], [item.input_text for item in batch])
