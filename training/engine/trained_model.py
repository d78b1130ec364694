"""What is trained: an adapter on a frozen base, or all weights of a model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from peft import PeftModel

from training.engine.adapter_files import save_adapter
from training.engine.answer_loss import AnswerLoss
from training.engine.batches import Batch
from training.engine.device import Precision
from training.engine.lora_dropout import use_block_dropout
from training.engine.lora_model import check_first_gradients, list_trainables
from training.engine.process_group import ProcessGroup


class BatchLoss(Protocol):
    """The summed loss of a batch."""

    def sum(self, batch: Batch) -> torch.Tensor:
        """Return the summed loss in nats over the trained tokens, a float32 scalar."""


class TrainedModel(Protocol):
    """A model in training; how it is trained and stored is its own affair, the steps are the loop's.

    Attributes:
        module: The model, to be put into training or evaluation mode.
        trainables: The parameters that the optimiser changes, float32, by name.
        needs_all_processes: Whether every process must take part in every pass, a batch of its own or not.
    """

    @property
    def module(self) -> torch.nn.Module:
        """The model, to be put into training or evaluation mode."""

    @property
    def trainables(self) -> Mapping[str, torch.nn.Parameter]:
        """The parameters that the optimiser changes, by name."""

    @property
    def needs_all_processes(self) -> bool:
        """Whether every process must take part in every pass, a batch of its own or not."""

    def prepare(self, probe: Batch, precision: Precision, *, gradient_checkpointing: bool) -> BatchLoss:
        """Make the model ready for training steps and return its loss; called once, before anything else.

        Args:
            probe: A small batch, on the device.
            precision: Of the training.
            gradient_checkpointing: Whether activations are computed again in the backward pass.
        """

    def start_alike(self, group: ProcessGroup) -> None:
        """Give every process the weights of the first one; called once, after `prepare`."""

    def sum_gradients(self, group: ProcessGroup) -> None:
        """Bring the gradients of all processes together after the backward passes of a step."""

    def check_first_gradients(self) -> None:
        """Check after the first step's backward passes that everything can learn.

        Raises:
            TrainingFailed: Something that is to be trained gets no gradient.
        """

    def end_passes(self) -> None:
        """Give back what forward passes without a backward pass keep."""

    def save(self, output: Path, group: ProcessGroup) -> None:
        """Write what was trained, complete or not at all; every process calls this, the first one writes.

        Raises:
            TrainingFailed: The files do not hold what was trained, or nothing was.
            FileExistsError: If ``output`` exists and is not empty.
        """


class AdapterModel:
    """A LoRA adapter on a frozen base, held whole by every process."""

    needs_all_processes = False

    def __init__(self, model: PeftModel) -> None:
        self.module = model
        self.trainables = list_trainables(model)

    def prepare(self, probe: Batch, precision: Precision, *, gradient_checkpointing: bool) -> AnswerLoss:
        """Make dropout cheap on a CPU, switch checkpointing on, and return the loss."""
        if precision.device.type == "cpu":
            use_block_dropout(self.module)
        if gradient_checkpointing:
            # Without gradients at the inputs, checkpointed blocks of a frozen model would get none at all.
            self.module.enable_input_require_grads()
            self.module.gradient_checkpointing_enable({"use_reentrant": False})
        with precision.autocast():
            return AnswerLoss(self.module.get_base_model(), probe)

    def start_alike(self, group: ProcessGroup) -> None:
        """Copy the adapter of the first process."""
        group.copy_from_first(parameter.data for parameter in self.trainables.values())

    def sum_gradients(self, group: ProcessGroup) -> None:
        """Sum the adapter's gradients in one message."""
        group.sum_gradients(self.trainables.values())

    def check_first_gradients(self) -> None:
        """See `training.engine.lora_model.check_first_gradients`."""
        check_first_gradients(self.trainables)

    def end_passes(self) -> None:
        """Keep nothing."""

    def save(self, output: Path, group: ProcessGroup) -> None:
        """Write a PEFT folder, see `training.engine.adapter_files.save_adapter`."""
        if group.rank == 0:
            save_adapter(self.module, output)
