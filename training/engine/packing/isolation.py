"""Whether packed rows really do not see each other, tried out on the model that is to be trained.

Shape letters: T tokens of a sequence, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Final

import torch
from transformers import PreTrainedModel

from training.engine.batches import Batch, collate
from training.engine.chat import ChatRow
from training.engine.device import Precision
from training.engine.errors import TrainingFailed
from training.engine.packing.collate import collate_packed

TOLERANCES: Final = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""Largest difference between the logits of a row alone and in a sequence, in units of its largest logit.
Products of other shapes are rounded otherwise, and the layers amplify it: 0.03 was measured in bfloat16,
whose unit of rounding is 8 times that of float16, with SmolLM2-135M. Small leaks are left to the other
difference."""

MAX_CHECKED_ROWS: Final = 4
_EXPERT_KEYS: Final = ("num_experts", "num_local_experts", "n_routed_experts")


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationReport:
    """What the trial showed.

    Attributes:
        num_rows: Rows that shared the sequence.
        alone_difference: Largest difference between the logits of a row alone and in the sequence, in units
            of the row's largest absolute logit.
        change_difference: Likewise, between the logits of a row before and after all tokens of the others
            were changed.
        tolerance: Largest ``alone_difference`` that passes.
        change_tolerance: Largest ``change_difference`` that passes: 0, since the shapes stay the same, except
            for models with experts, where other tokens change the shapes of the experts' products.
    """

    num_rows: int
    alone_difference: float
    change_difference: float
    tolerance: float
    change_tolerance: float

    @property
    def is_isolated(self) -> bool:
        """Whether both differences are within their tolerances; NaN is not."""
        return self.alone_difference <= self.tolerance and self.change_difference <= self.change_tolerance


def check_isolation(
    model: PreTrainedModel, rows: Sequence[ChatRow], *, pad_token_id: int, precision: Precision
) -> IsolationReport:
    """Check on some rows that the logits of a row do not depend on the rows that share its sequence.

    Each row must have the same logits alone and in the sequence, and keep them bit for bit when the other
    rows are replaced. The second catches a leak that is smaller than rounding to bfloat16.

    Args:
        model: A causal language model, with or without a PEFT adapter injected into its modules, on the
            device; dropout is switched off during the trial.
        rows: Rows of the training that fit into one sequence; the first `MAX_CHECKED_ROWS` are taken. A
            single row is packed twice.
        pad_token_id: Any valid id.
        precision: Of the training.

    Raises:
        TrainingFailed: ``packing-leaks``.
    """
    chosen = list(rows[:MAX_CHECKED_ROWS])
    if len(chosen) == 1:
        chosen *= 2
    was_training = model.training
    model.eval()
    try:
        report = _try_out(model, chosen, pad_token_id, precision)
    finally:
        model.train(was_training)
    if not report.is_isolated:
        raise TrainingFailed(
            "packing-leaks",
            f"Packed rows see each other in this base model: the logits of a row differ by "
            f"{report.alone_difference:.2g} of the largest (allowed: {report.tolerance:.2g}) from those of "
            f"the row alone, and by {report.change_difference:.2g} (allowed: {report.change_tolerance:.2g}) "
            "when the other rows are changed. Set training.packing to false.",
        )
    return report


def _try_out(
    model: PreTrainedModel, rows: list[ChatRow], pad_token_id: int, precision: Precision
) -> IsolationReport:
    borders = list(pairwise(accumulate((len(row.input_ids) for row in rows), initial=0)))
    batch = collate_packed([rows], pad_token_id=pad_token_id)
    packed = _compute_logits(model, batch, precision)
    alone = changed = 0.0
    for row, (start, end) in zip(rows, borders, strict=True):
        own = packed[start:end]
        single = _compute_logits(model, collate([row], pad_token_id=pad_token_id), precision)
        alone = _larger(alone, _difference(own, single))
        others = _change_others(batch, start, end, vocabulary_size=own.shape[1])
        changed = _larger(changed, _difference(own, _compute_logits(model, others, precision)[start:end]))
    tolerance = TOLERANCES[precision.dtype]
    has_experts = any(getattr(model.config.get_text_config(), key, None) for key in _EXPERT_KEYS)
    return IsolationReport(
        num_rows=len(rows),
        alone_difference=alone,
        change_difference=changed,
        tolerance=tolerance,
        change_tolerance=tolerance if has_experts else 0.0,
    )


def _compute_logits(model: PreTrainedModel, batch: Batch, precision: Precision) -> torch.Tensor:
    """Return the float32 logits [T, V] of a batch of one sequence."""
    with torch.no_grad(), precision.autocast():
        output: Any = model(**batch.to(precision.device).inputs, use_cache=False)
    logits: torch.Tensor = output.logits[0]
    return logits.float()


def _change_others(batch: Batch, start: int, end: int, *, vocabulary_size: int) -> Batch:
    """Replace each token outside of a row by another one."""
    changed = (batch.input_ids + vocabulary_size // 2) % vocabulary_size
    changed[:, start:end] = batch.input_ids[:, start:end]
    return replace(batch, input_ids=changed)


def _difference(own: torch.Tensor, other: torch.Tensor) -> float:
    return float((own - other).abs().max() / other.abs().max())


def _larger(left: float, right: float) -> float:
    """Return the larger number, NaN if one is."""
    return right if right != right or right > left else left
