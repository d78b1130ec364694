"""Repeated examples: the same input with the same answer (MISSION C3(1)).

``drop_duplicates`` keeps the first of a kind; ``cleaning.outputs`` treats one input with several answers. Not
done here: duplicates between sets (``data.leakage``).
"""

from array import array
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from registry.artifacts.findings import shown
from training.engine.data.cleaning.outputs import LIMIT_OUTPUTS
from training.engine.data.cleaning.step import Outcome, Step, StepContext, StepKind
from training.engine.data.examples import Example
from training.engine.data.near_duplicates import (
    NEAR_DUPLICATE_SIMILARITY,
    Firsts,
    FirstsFinder,
    SetCollector,
    ShingleSets,
)
from training.engine.data.near_duplicates.answers import read_answer
from training.engine.data.near_duplicates.shingle_sets import (
    BATCH_CHARACTERS,
    BATCH_TEXTS,
    Numbers,
    hash_text,
)
from training.engine.data.shingles import normalise
from training.engine.settings_rules import choice, number

INPUT_AND_ANSWER: Final = "input_and_answer"
INPUT_ONLY: Final = "input"
BOILERPLATE_FRACTION: Final = 0.5
"""A shingle in more than this part of all inputs is boilerplate."""
_MIN_EXAMPLES_FOR_BOILERPLATE: Final = 20
_NO_ANSWER: Final = "(no answer)"


class DropDuplicates:
    """The step ``drop_duplicates`` at work: collects hashes in the first pass, decides at its end.

    Memory: 8 bytes a shingle of inputs and answers and about 110 bytes an example, for 100,000 examples with
    60 shingles each 60 MB; texts and ids are not held, but for the ids of examples that have duplicates.
    """

    def __init__(self, *, threshold: float, compares_answers: bool) -> None:
        self._threshold, self._compares_answers = threshold, compares_answers
        self._collectors = [SetCollector() for _ in range(2 if compares_answers else 1)]
        self._batches: list[list[str]] = [[] for _ in self._collectors]
        self._num_characters = 0
        self._wholes, self._labels = array("Q"), array("q")
        self._decision: _Decision | None = None
        self._num_applied = 0
        self._kept_ids: dict[int, str] = {}

    def observe(self, example: Example) -> None:
        """Take one example's hashes."""
        answer = read_answer(example.answer) if self._compares_answers else read_answer(None)
        system = normalise("\n".join(item.content for item in example.messages if item.role == "system"))
        label = hash_text(f"{system}\x00{answer.text if answer.is_json else ''}")
        texts = [example.input_text, answer.text or _NO_ANSWER]
        self._wholes.append(hash_text(f"{label}\x00{normalise(example.input_text)}\x00{answer.text}"))
        self._labels.append(label >> 1)
        for batch, text in zip(self._batches, texts, strict=False):
            batch.append(text)
            self._num_characters += len(text)
        if len(self._batches[0]) >= BATCH_TEXTS or self._num_characters >= BATCH_CHARACTERS:
            self._hash_batches()

    def apply(self, example: Example) -> Outcome:
        """Keep the first of a kind."""
        decision = self._decide()
        place, self._num_applied = self._num_applied, self._num_applied + 1
        kept = int(decision.firsts[place])
        if kept == place:
            if decision.num_alike[place] > 1:
                self._kept_ids[place] = example.example_id
            return Outcome.kept(example)
        detail = f"of {shown(self._kept_ids[kept])}, similarity {decision.similarity[place]:.2f}"
        return Outcome.dropped(
            "exact-duplicate" if decision.is_exact[place] else "near-duplicate", detail=detail
        )

    def facts(self) -> Mapping[str, Any]:
        """Return clusters (a kept example and what was dropped for it), memory and boilerplate."""
        decision = self._decide()
        return {
            "num_clusters": int((decision.num_alike > 1).sum()),
            "largest_cluster": int(decision.num_alike.max(initial=0)),
            "held_bytes": decision.held_bytes,
            "boilerplate_fraction": decision.boilerplate_fraction,
        }

    def _hash_batches(self) -> None:
        for collector, batch in zip(self._collectors, self._batches, strict=True):
            collector.add(batch)
            batch.clear()
        self._num_characters = 0

    def _decide(self) -> "_Decision":
        if self._decision is None:
            self._hash_batches()
            facets = [collector.finish()[0] for collector in self._collectors]
            self._decision = _Decision(
                facets, np.array(self._wholes), np.array(self._labels), threshold=self._threshold
            )
            self._wholes, self._labels = array("Q"), array("q")
        return self._decision


class _Decision:
    """What becomes of each example; all arrays are [num_examples].

    Attributes:
        firsts: Number of the kept example that it repeats, or its own.
        is_exact: Whether it repeats that one exactly.
        similarity: Of its input to that one's.
        num_alike: Of kept examples 1 + how many repeat them; else 0.
        held_bytes: Memory of the sets that were compared.
        boilerplate_fraction: Part of all inputs' shingles that stand in more than half of the inputs, 0-1;
            None with too few examples. Near 1 the similarity of inputs says little: an instruction that all
            users' texts repeat belongs into the system message.
    """

    def __init__(self, facets: list[ShingleSets], wholes: Any, labels: Numbers, *, threshold: float) -> None:
        _, earliest, kinds = np.unique(wholes, return_index=True, return_inverse=True)
        equal = earliest[kinds].astype(np.int64)
        rows = np.flatnonzero(equal == np.arange(len(wholes)))
        found: Firsts = FirstsFinder(facets, threshold=threshold, labels=labels).find(rows)
        self.firsts = found.first[equal]
        self.similarity = found.similarity[equal]
        self.is_exact = self.firsts == equal
        self.num_alike = np.bincount(self.firsts, minlength=len(wholes))
        self.held_bytes = sum(
            int(sets.keys.nbytes + sets.starts.nbytes + sets.sketches.nbytes) for sets in facets
        )
        self.boilerplate_fraction = _measure_boilerplate(facets[0])


def _measure_boilerplate(inputs: ShingleSets) -> float | None:
    if len(inputs) < _MIN_EXAMPLES_FOR_BOILERPLATE or not len(inputs.keys):
        return None
    _, counts = np.unique(inputs.keys, return_counts=True)
    return round(float(counts[counts > BOILERPLATE_FRACTION * len(inputs)].sum() / len(inputs.keys)), 4)


def _build(parameters: Mapping[str, Any], context: StepContext) -> Step:
    return DropDuplicates(
        threshold=parameters["threshold"], compares_answers=parameters["compare"] == INPUT_AND_ANSWER
    )


DROP_DUPLICATES: Final = StepKind(
    name="drop_duplicates",
    version=1,
    summary="Keeps the first of examples whose inputs and answers are equal or nearly so.",
    source="MISSION C3(1)",
    rules={"threshold": number(0.5, 1.0), "compare": choice(INPUT_AND_ANSWER, INPUT_ONLY)},
    defaults={"threshold": NEAR_DUPLICATE_SIMILARITY, "compare": INPUT_AND_ANSWER},
    build=_build,
    needs_first_pass=True,
)
KINDS: Final = (DROP_DUPLICATES, LIMIT_OUTPUTS)
