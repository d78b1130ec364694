"""One optimiser step: gradients of several batches, weighted by trained tokens, over several processes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from training.engine.batches import Batch
from training.engine.checkpoints import batch_seed
from training.engine.config import OptimisationSettings
from training.engine.device import Precision
from training.engine.errors import NotFinite
from training.engine.loss_scale import LossScale
from training.engine.process_group import ProcessGroup
from training.engine.trained_model import BatchLoss, TrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """What a step measured.

    Attributes:
        loss_sum: Loss of all batches in nats.
        num_trained_tokens: Of all batches.
        gradient_norm: Before clipping; None when the step was left out after an overflow in float16.
    """

    loss_sum: float
    num_trained_tokens: int
    gradient_norm: float | None


class OptimiserStep:
    """Does optimiser steps on a model.

    Args:
        model: Prepared for training.
        loss: Of that model.
        settings: Clipping, weight decay, seed.
        precision: Of the training.
        group: The processes that share the batches.

    Attributes:
        optimiser: AdamW over the model's trainables.
        scale: The loss scale.
    """

    def __init__(
        self,
        *,
        model: TrainedModel,
        loss: BatchLoss,
        settings: OptimisationSettings,
        precision: Precision,
        group: ProcessGroup,
    ) -> None:
        self._model = model
        self._loss = loss
        self._settings = settings
        self._precision = precision
        self._group = group
        parameters = list(model.trainables.values())
        self.optimiser = torch.optim.AdamW(
            parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.scale = LossScale(precision, self.optimiser, parameters)

    def run(self, step: int, batches: Sequence[Batch], *, learning_rate: float) -> StepOutcome:
        """Accumulate gradients weighted by trained tokens, clip, and step.

        Args:
            step: From 1.
            batches: Of all processes; each computes its share.
            learning_rate: Of this step.

        Raises:
            NotFinite: The loss or the gradient; no weight was changed.
            TrainingFailed: See `TrainedModel.check_first_gradients`, in the first step that is not left out.
        """
        num_trained = sum(batch.num_trained_tokens for batch in batches)
        (loss_sum,) = self._group.sum_numbers(self._accumulate_own(step, batches, num_trained))
        if not math.isfinite(loss_sum):
            raise _not_finite("loss", step, batches)
        self._model.sum_gradients(self._group)
        norm = self.scale.clip(self._settings.max_grad_norm)
        is_finite = math.isfinite(norm)
        if not is_finite and not self.scale.may_overflow:
            raise _not_finite("gradient norm", step, batches)
        if is_finite and not self.optimiser.state:
            self._model.check_first_gradients()
        for parameters in self.optimiser.param_groups:
            parameters["lr"] = learning_rate
        self.scale.step()
        self.optimiser.zero_grad(set_to_none=True)
        return StepOutcome(
            loss_sum=loss_sum, num_trained_tokens=num_trained, gradient_norm=norm if is_finite else None
        )

    def _accumulate_own(self, step: int, batches: Sequence[Batch], num_trained: int) -> float:
        """Add the gradients of this process's batches; return their summed loss."""
        loss_sum = 0.0
        for first in range(0, len(batches), self._group.size):
            index = first + self._group.rank
            if index < len(batches):
                torch.manual_seed(batch_seed(self._settings.seed, step, index))
                loss_sum += self._accumulate(batches[index], num_trained)
            elif self._model.needs_all_processes:
                self._accumulate(batches[0], math.inf)
        return loss_sum

    def _accumulate(self, batch: Batch, num_trained: float) -> float:
        """Add a batch's gradients, weighted by its share of the step's trained tokens; return its summed
        loss.

        Weighting batches alike instead would let short answers count more (transformers issue 34191).

        Args:
            batch: On any device.
            num_trained: Trained tokens of the step; infinite for a batch that is not to count.
        """
        with self._precision.autocast():
            loss = self._loss.sum(batch.to(self._precision.device))
        self.scale.backward(loss / num_trained)
        return float(loss.detach())


def _not_finite(what: str, step: int, batches: Sequence[Batch]) -> NotFinite:
    ids = [example_id for batch in batches for example_id in batch.example_ids]
    return NotFinite(what=what, step=step, example_ids=ids)
