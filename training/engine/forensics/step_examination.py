"""One step taken apart: its batches as they were, and each of its examples alone."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import torch

from training.engine.batches import Batch, collate
from training.engine.chat import ChatRow
from training.engine.checkpoints import batch_seed
from training.engine.device import Precision
from training.engine.forensics.activation_watch import ActivationWatch
from training.engine.forensics.evidence import ExampleEvidence, ModuleEvidence
from training.engine.forensics.state_check import measure_norm, strip_adapter
from training.engine.forensics.training_inputs import TrainingInputs
from training.engine.step_plan import StepPlan
from training.engine.trained_model import TrainedModel

MAX_GRADIENT: Final = math.sqrt(torch.finfo(torch.float32).max)
"""AdamW keeps the gradient's square: above this, 1.8e19, it is infinite in float32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepExamination:
    """What a step's batches give with the weights from before it.

    Attributes:
        is_finite: Whether all losses and gradients are.
        modules: Worst first, as in `NotFiniteReport`.
        first_bad_module: As in `NotFiniteReport`.
    """

    is_finite: bool
    modules: tuple[ModuleEvidence, ...]
    first_bad_module: str | None


class StepExaminer:
    """Computes losses and gradients of single steps and examples; changes no weight.

    Args:
        model: In the state before the first step: whether its loss can be split is tried out now.
        inputs: Of the training.
        precision: Of the model.
    """

    def __init__(self, model: TrainedModel, inputs: TrainingInputs, precision: Precision) -> None:
        self._model = model
        self._inputs = inputs
        self._precision = precision
        self._plan = StepPlan(inputs.rows, inputs.settings, pad_token_id=inputs.pad_token_id)
        self._rows: dict[str, list[ChatRow]] = {}
        for row in inputs.rows:
            self._rows.setdefault(row.example_id, []).append(row)
        shortest = min(inputs.rows, key=lambda row: len(row.input_ids))
        self._loss = model.prepare(
            self._collate(shortest).to(precision.device),
            precision,
            gradient_checkpointing=inputs.settings.gradient_checkpointing,
        )

    def examine_batches(self, step: int) -> StepExamination:
        """Compute a step's batches with the dropout that they had, and their gradients per module."""
        batches = self._list_batches(step)
        num_trained = sum(batch.num_trained_tokens for batch in batches)
        first_bad: str | None = None
        is_finite = True
        self._clear()
        for index, batch in enumerate(batches):
            with ActivationWatch(self._model.module, only_leaves=False) as watch:
                loss = self._sum_loss(batch, batch_seed(self._inputs.settings.seed, step, index))
            first_bad = first_bad or watch.take_first_bad()
            is_finite = is_finite and math.isfinite(float(loss.detach()))
            torch.autograd.backward(loss / num_trained)
        modules = self._measure_modules()
        self._clear()
        bad = [module for module in modules if not module.is_finite]
        return StepExamination(
            is_finite=is_finite and not bad and first_bad is None,
            # The gradient comes from the loss, so the last bad module in forward order is where it began.
            modules=(*reversed(bad), *sorted(set(modules) - set(bad), key=_by_norm)),
            first_bad_module=first_bad or (bad[-1].name if bad else None),
        )

    def examine_examples(self, rows: Iterable[ChatRow], *, seed: int) -> tuple[ExampleEvidence, ...]:
        """Compute each row alone."""
        return tuple(self._examine_alone(row, seed) for row in rows)

    def examine_step(self, step: int) -> tuple[ExampleEvidence, ...]:
        """Compute each example of a step alone, with the seed of its batch: where a batch has one row, its
        dropout is that of the training.
        """
        seed = self._inputs.settings.seed
        return tuple(
            self._examine_alone(row, batch_seed(seed, step, index))
            for index, batch in enumerate(self._list_batches(step))
            for example_id in dict.fromkeys(batch.example_ids)
            # Ids are unique within a file only; all rows of an id are looked at.
            for row in self._rows[example_id]
        )

    def _examine_alone(self, row: ChatRow, seed: int) -> ExampleEvidence:
        self._clear()
        batch = self._collate(row)
        with ActivationWatch(self._model.module, only_leaves=True) as watch:
            loss = self._sum_loss(batch, seed) / batch.num_trained_tokens
        has_bad_output = watch.take_first_bad() is not None
        torch.autograd.backward(loss)
        value, norm = float(loss.detach()), measure_norm(self._gradients())
        self._clear()
        return ExampleEvidence(
            example_id=row.example_id,
            loss=value,
            gradient_norm=norm,
            is_finite=math.isfinite(value) and norm < MAX_GRADIENT and not has_bad_output,
            num_tokens=len(row.input_ids),
            text=self._inputs.decode(row),
        )

    def _list_batches(self, step: int) -> list[Batch]:
        _, batches = next(self._plan.iterate(after_step=step - 1))
        return batches

    def _sum_loss(self, batch: Batch, seed: int) -> torch.Tensor:
        self._model.module.train()
        torch.manual_seed(seed)
        with self._precision.autocast():
            return self._loss.sum(batch.to(self._precision.device))

    def _collate(self, row: ChatRow) -> Batch:
        return collate([row], pad_token_id=self._inputs.pad_token_id)

    def _measure_modules(self) -> list[ModuleEvidence]:
        gradients: dict[str, list[torch.Tensor]] = {}
        for name, parameter in self._model.trainables.items():
            if parameter.grad is not None:
                gradients.setdefault(_module_of(name), []).append(parameter.grad)
        return [
            ModuleEvidence(name=name, gradient_norm=measure_norm(tensors))
            for name, tensors in gradients.items()
        ]

    def _gradients(self) -> list[torch.Tensor]:
        return [parameter.grad for parameter in self._model.trainables.values() if parameter.grad is not None]

    def _clear(self) -> None:
        for parameter in self._model.trainables.values():
            parameter.grad = None


def _module_of(parameter_name: str) -> str:
    return strip_adapter(parameter_name.split(".lora_")[0].removesuffix(".weight").removesuffix(".bias"))


def _by_norm(module: ModuleEvidence) -> float:
    return -module.gradient_norm
