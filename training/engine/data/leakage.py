"""Leakage: exact and near duplicates between training and evaluation inputs (MISSION C6). No torch here."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from training.engine.data.examples import Example
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.data.shingles import SimilarSetIndex, make_shingles, normalise

NEAR_DUPLICATE_SIMILARITY: Final = 0.85
"""MISSION C3: similarity from which two samples are near duplicates."""

EVALUATION_ROLES: Final = ("holdout", "ood", "regression", "canary")
MAX_PAIRS_PER_EXAMPLE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedPair:
    """A training example and an evaluation example that ask the same.

    Attributes:
        train_id: Id of the training example.
        role: Role of the evaluation set.
        example_id: Id of the evaluation example.
        kind: "exact" when the normalised inputs are equal, else "near".
        similarity: Jaccard similarity of the inputs' shingles, 0.85-1.
    """

    train_id: str
    role: str
    example_id: str
    kind: str
    similarity: float


@dataclass(frozen=True, slots=True)
class LeakageReport:
    """All pairs found, at most three per evaluation example, the most similar first."""

    pairs: tuple[LeakedPair, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the ``leakage`` value of an evaluation report."""
        return {"status": "checked", "pairs": [asdict(pair) for pair in self.pairs]}


def find_leakage(
    training: Sequence[Example],
    evaluation_sets: Mapping[str, Sequence[Example]],
    *,
    threshold: float = NEAR_DUPLICATE_SIMILARITY,
) -> LeakageReport:
    """Compare what users say in training with what they say in each evaluation set.

    System messages and answers are left out: they are alike on purpose. Empty inputs are left out too: one
    empty input is the same as another without anything having leaked.

    Args:
        training: All training examples, general ones included.
        evaluation_sets: Examples by role.
        threshold: Smallest similarity of a near duplicate.
    """
    texts = [normalise(example.input_text) for example in training]
    index = SimilarSetIndex([make_shingles(text) for text in texts], threshold=threshold)
    numbers_by_text: defaultdict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(texts):
        if text:
            numbers_by_text[text].append(number)
    pairs: list[LeakedPair] = []
    for role, examples in evaluation_sets.items():
        for example in examples:
            text = normalise(example.input_text)
            exact = dict.fromkeys(numbers_by_text.get(text, ()), 1.0)
            found = exact or dict(index.find(make_shingles(text)))
            best = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:MAX_PAIRS_PER_EXAMPLE]
            pairs += [
                LeakedPair(
                    train_id=training[number].example_id,
                    role=role,
                    example_id=example.example_id,
                    kind="exact" if exact else "near",
                    similarity=similarity,
                )
                for number, similarity in best
            ]
    return LeakageReport(tuple(pairs))


def check_leakage(*, training_data: Path | None, suite: Path) -> dict[str, Any]:
    """Compare the files of a job: all training files with each evaluation set of a suite folder.

    Args:
        training_data: JSONL file, or folder of ``*.jsonl``; None when the training data is not known.
        suite: Folder with holdout.jsonl, ood.jsonl, regression.jsonl, canary.jsonl (those that exist are
            compared).

    Returns:
        The ``leakage`` value of an evaluation report; status "unknown" without training data, never
        "checked".

    Raises:
        DataInvalid: A file cannot be read.
    """
    if training_data is None:
        return {"status": "unknown", "pairs": []}
    training = [
        example
        for file in list_jsonl_files(training_data)
        for example in read_examples(file, needs_answer=False)
    ]
    evaluation_sets = {
        role: read_examples(file, needs_answer=False)
        for role in EVALUATION_ROLES
        if (file := suite / f"{role}.jsonl").is_file()
    }
    return find_leakage(training, evaluation_sets).to_json()
