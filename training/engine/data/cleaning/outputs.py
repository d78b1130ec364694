"""One input with several answers: at most a few that differ in substance (MISSION C3(1)), and contradictions.

Inputs are the same when all messages before the answer are, normalised: another system message is another
task.
"""

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from registry.artifacts.findings import shown, shown_list
from training.engine.data.cleaning.step import Outcome, Step, StepContext, StepKind
from training.engine.data.examples import Example
from training.engine.data.near_duplicates import NEAR_DUPLICATE_SIMILARITY
from training.engine.data.near_duplicates.answers import (
    AnswerDigest,
    ComparableAnswer,
    digest_answer,
    is_same_answer,
    read_answer,
)
from training.engine.data.near_duplicates.shingle_sets import hash_text
from training.engine.data.shingles import normalise
from training.engine.settings_rules import choice, count, number

FLAG_CONFLICTS: Final = "flag"
DROP_CONFLICTS: Final = "drop_all"
KEEP_FIRST: Final = "keep_first"
CONFLICT: Final = "conflicting-outputs"
MAX_LISTED_CONFLICTS: Final = 20
MAX_LISTED_IDS: Final = 5


class LimitOutputs:
    """The step ``limit_outputs`` at work.

    Memory: 16 bytes an example, and of inputs that come more than once the hashes of kept answers until the
    input came for the last time; no text is held.
    """

    def __init__(self, *, max_outputs: int, threshold: float, conflicts: str) -> None:
        self._max_outputs, self._threshold, self._conflicts = max_outputs, threshold, conflicts
        self._inputs, self._labels = array("Q"), array("Q")
        # How often each input is still to come, of those that come more than once.
        self._repeated: dict[int, int] | None = None
        self._contradicted: frozenset[int] = frozenset()
        self._num_applied = 0
        self._kept: defaultdict[int, list[AnswerDigest]] = defaultdict(list)
        self._conflict_ids: defaultdict[int, list[str]] = defaultdict(list)
        self._conflict_sizes: Counter[int] = Counter()

    def observe(self, example: Example) -> None:
        """Take the hashes of input and labels; an example without an answer is left alone."""
        self._inputs.append(_hash_input(example))
        answer = read_answer(example.answer)
        self._labels.append(hash_text(answer.labels) if answer.is_json else 0)

    def apply(self, example: Example) -> Outcome:
        """Keep the first few different outputs of an input."""
        repeated = self._find_repeated()
        place, self._num_applied = self._num_applied, self._num_applied + 1
        number_of_input = self._inputs[place]
        if number_of_input not in repeated:
            return Outcome.kept(example)
        outcome = Outcome.kept(example) if example.answer is None else self._judge(number_of_input, example)
        repeated[number_of_input] -= 1
        if not repeated[number_of_input]:
            self._kept.pop(number_of_input, None)
        return outcome

    def _judge(self, number_of_input: int, example: Example) -> Outcome:
        answer = read_answer(example.answer)
        conflict = self._see_conflict(number_of_input, example, answer)
        if conflict is not None and conflict.example is None:
            return conflict
        kept, digest = self._kept[number_of_input], digest_answer(answer)
        if any(is_same_answer(digest, other, threshold=self._threshold) for other in kept):
            return Outcome.dropped("same-output-again")
        if len(kept) == self._max_outputs:
            return Outcome.dropped("too-many-outputs", detail=f"{self._max_outputs} others are kept")
        kept.append(digest)
        return conflict or Outcome.kept(example)

    def facts(self) -> Mapping[str, Any]:
        """Return how many inputs came more than once, and the contradictions with ids."""
        listed = list(self._conflict_ids.items())[:MAX_LISTED_CONFLICTS]
        return {
            "num_repeated_inputs": len(self._find_repeated()),
            "num_conflicting_inputs": len(self._conflict_sizes),
            "num_conflicting_examples": self._conflict_sizes.total(),
            "conflicts": [
                {"num_examples": self._conflict_sizes[key], "example_ids": ids} for key, ids in listed
            ],
        }

    def _see_conflict(self, key: int, example: Example, answer: ComparableAnswer) -> Outcome | None:
        """Return what the contradiction means for the example; None when there is none."""
        if key not in self._contradicted or not answer.is_json:
            return None
        ids = self._conflict_ids[key]
        self._conflict_sizes[key] += 1
        detail = f"others: {shown_list(ids)}" if ids else "the first of them"
        if len(ids) < MAX_LISTED_IDS:
            ids.append(shown(example.example_id))
        labels = hash_text(answer.labels)
        is_other = any(item.is_json and item.labels != labels for item in self._kept[key])
        if self._conflicts == DROP_CONFLICTS or (self._conflicts == KEEP_FIRST and is_other):
            return Outcome.dropped(CONFLICT, detail=detail)
        return Outcome.flagged(example, CONFLICT, detail=detail)

    def _find_repeated(self) -> dict[int, int]:
        if self._repeated is not None:
            return self._repeated
        inputs, labels = np.array(self._inputs), np.array(self._labels)
        values, counts = np.unique(inputs, return_counts=True)
        is_repeated = counts > 1
        self._repeated = dict(zip(values[is_repeated].tolist(), counts[is_repeated].tolist(), strict=True))
        is_json = labels != 0
        pairs = np.unique(np.stack([inputs[is_json], labels[is_json]], axis=1), axis=0)
        values, counts = np.unique(pairs[:, 0], return_counts=True)
        self._contradicted = frozenset(values[counts > 1].tolist())
        return self._repeated


def _hash_input(example: Example) -> int:
    messages = example.messages[:-1] if example.answer is not None else example.messages
    return hash_text(json.dumps([[item.role, normalise(item.content)] for item in messages]))


def _build(parameters: Mapping[str, Any], context: StepContext) -> Step:
    return LimitOutputs(
        max_outputs=parameters["max_outputs"],
        threshold=parameters["threshold"],
        conflicts=parameters["conflicts"],
    )


LIMIT_OUTPUTS: Final = StepKind(
    name="limit_outputs",
    version=1,
    summary="Keeps the first few answers to one input, as far as they differ in substance.",
    source="MISSION C3(1)",
    rules={
        "max_outputs": count(1, 10),
        "threshold": number(0.5, 1.0),
        "conflicts": choice(FLAG_CONFLICTS, DROP_CONFLICTS, KEEP_FIRST),
    },
    defaults={
        "max_outputs": 3,
        "threshold": NEAR_DUPLICATE_SIMILARITY,
        "conflicts": FLAG_CONFLICTS,
    },
    build=_build,
    needs_first_pass=True,
)
