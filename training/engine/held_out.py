"""The loss on held-out rows: no gradients, no dropout, nothing kept."""

from collections.abc import Sequence
from typing import Final

import torch

from training.engine.batches import collate
from training.engine.chat import ChatRow
from training.engine.device import Precision
from training.engine.process_group import ProcessGroup
from training.engine.trained_model import BatchLoss, TrainedModel

MIN_BATCH_SIZE: Final = 8
"""Held-out batches keep no activations, so they may be larger than those of training."""


class HeldOutLoss:
    """Measures the mean loss per trained token of some rows.

    Args:
        rows: May be empty; then nothing can be measured.
        model: In training.
        loss: Of that model.
        batch_size: Rows per forward pass in training; at least `MIN_BATCH_SIZE` are taken here.
        pad_token_id: Any valid id.
        precision: Of the training.
        group: The processes that share the rows.
    """

    def __init__(
        self,
        rows: Sequence[ChatRow],
        *,
        model: TrainedModel,
        loss: BatchLoss,
        batch_size: int,
        pad_token_id: int,
        precision: Precision,
        group: ProcessGroup,
    ) -> None:
        by_length = sorted(rows, key=lambda row: len(row.input_ids))
        size = max(MIN_BATCH_SIZE, batch_size)
        self._batches = [by_length[start : start + size] for start in range(0, len(by_length), size)]
        self._model = model
        self._loss = loss
        self._pad_token_id = pad_token_id
        self._precision = precision
        self._group = group

    def __bool__(self) -> bool:
        return bool(self._batches)

    def measure(self) -> float:
        """Return the mean loss in nats per trained token; the model is in training mode afterwards."""
        loss_sum, num_trained = 0.0, 0
        self._model.module.eval()
        with torch.no_grad():
            for first in range(0, len(self._batches), self._group.size):
                value, num_tokens = self._measure_own(first + self._group.rank)
                loss_sum += value
                num_trained += num_tokens
        self._model.end_passes()
        self._model.module.train()
        total, num_total = self._group.sum_numbers(loss_sum, num_trained)
        return total / num_total

    def _measure_own(self, index: int) -> tuple[float, int]:
        has_own = index < len(self._batches)
        if not has_own and not self._model.needs_all_processes:
            return 0.0, 0
        rows = self._batches[index] if has_own else self._batches[0][:1]
        batch = collate(rows, pad_token_id=self._pad_token_id)
        with self._precision.autocast():
            value = float(self._loss.sum(batch.to(self._precision.device)))
        return (value, batch.num_trained_tokens) if has_own else (0.0, 0)
