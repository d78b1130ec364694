"""The check for leaks: the held-out examples are not training examples too (MISSION C6)."""

from collections.abc import Iterable, Sequence
from typing import Final

from training.engine.data.examples import Example
from training.engine.data.near_duplicates import NEAR_DUPLICATE_SIMILARITY, SimilarTextIndex
from training.engine.data.shingles import normalise
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.data_view import DataView
from training.engine.preflight.outcomes import failed, passed, skipped, warned
from training.engine.preflight.report import CheckResult

MAX_LEAKED_FRACTION: Final = 0.05
"""From this part of the held-out examples on, their loss says nothing about new inputs (project's own
choice)."""
MAX_HELD_OUT: Final = 2_000
MAX_COMPARED: Final = 20_000
"""So many training examples are compared for similarity; all are for equality."""


def check_leaks(view: DataView) -> CheckResult:
    """No held-out example asks what a training example asks."""
    if view.held_out and view.examples:
        leaked, num_all = _find_leaked(view.examples, view.held_out), len(view.held_out)
    elif view.held_out_rows:
        trained = {row.input_ids for row in view.rows}
        leaked = [row.example_id for row in view.held_out_rows if row.input_ids in trained]
        num_all = len(view.held_out_rows)
    else:
        return skipped("no-leak", "there are no held-out examples")
    if not leaked:
        return passed("no-leak", f"none of {num_all} held-out examples stands in the training data")
    judge = failed if len(leaked) > MAX_LEAKED_FRACTION * num_all else warned
    return judge(
        "no-leak",
        HandbookRow.LOSS_NEAR_ZERO,
        f"{len(leaked)} of {num_all} held-out examples ask the same as a training example, or nearly the "
        "same: the held-out loss will look better than it is",
        remedy="Take them out of one of the two sets (assay dataset leakage lists the pairs).",
        example_ids=leaked,
    )


def _find_leaked(examples: Sequence[Example], held_out: Sequence[Example]) -> list[str]:
    kept = held_out[:MAX_HELD_OUT]
    inputs = {normalise(example.input_text) for example in examples}
    leaked = {example.example_id for example in held_out if normalise(example.input_text) in inputs}
    index = SimilarTextIndex(_texts(kept), threshold=NEAR_DUPLICATE_SIMILARITY)
    stride = max(1, -(-len(examples) // MAX_COMPARED))
    leaked |= {kept[pair.right].example_id for pair in index.find(_texts(examples[::stride]))}
    return [example.example_id for example in held_out if example.example_id in leaked]


def _texts(examples: Sequence[Example]) -> Iterable[str]:
    return (example.input_text for example in examples)
