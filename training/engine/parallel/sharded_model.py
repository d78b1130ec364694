"""Full training on several processes that share out weights, gradients and moments among them (FSDP)."""

from pathlib import Path
from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from transformers import PreTrainedModel

from training.engine.answer_loss import AnswerLoss
from training.engine.batches import Batch
from training.engine.device import Precision
from training.engine.full_model import FullModel
from training.engine.process_group import ProcessGroup
from training.engine.trained_model import BatchLoss


class _LossModule(torch.nn.Module):
    """The loss as the outermost module: what it calls inside finds all weights gathered."""

    def __init__(self, model: PreTrainedModel, loss: AnswerLoss) -> None:
        super().__init__()
        self.model = model
        self._answer_loss = loss

    def forward(self, batch: Batch) -> torch.Tensor:
        return self._answer_loss.sum(batch)


class _ShardedLoss:
    """Calls the loss through its module, whose hooks gather the weights."""

    def __init__(self, module: _LossModule) -> None:
        self._module = module

    def sum(self, batch: Batch) -> torch.Tensor:
        """Return the summed loss in nats over the trained tokens, a float32 scalar."""
        loss: torch.Tensor = self._module(batch)
        return loss


class ShardedModel(FullModel):
    """A model whose weights are all trained, each process keeping its part of them (FSDP2).

    Weights and gradients travel in float32, so that the numbers are those of one process up to the order of
    sums.

    Args:
        model: Weights in float32, the same in every process.
        base_model: As in `FullModel`.
        group: The processes.
    """

    needs_all_processes = True

    def __init__(self, model: PreTrainedModel, *, base_model: Path | None, group: ProcessGroup) -> None:
        super().__init__(model, base_model=base_model)
        self._group = group
        self._sharded: list[FSDPModule] = []

    def prepare(self, probe: Batch, precision: Precision, *, gradient_checkpointing: bool) -> BatchLoss:
        """Switch checkpointing on, share out the weights block by block, and return the loss."""
        loss = self._make_loss(probe, precision, gradient_checkpointing=gradient_checkpointing)
        module = _LossModule(self.module, loss)
        mesh = init_device_mesh(precision.device.type, (self._group.size,))
        for part in (*_list_blocks(self.module), module):
            sharded = fully_shard(part, mesh=mesh)
            # The loss is weighted by trained tokens of all processes already: gradients are to be summed.
            sharded.set_gradient_divide_factor(1.0)
            sharded.set_force_sum_reduction_for_comms(True)
            self._sharded.append(sharded)
        self.trainables = dict(self.module.named_parameters())
        return _ShardedLoss(module)

    def start_alike(self, group: ProcessGroup) -> None:
        """Do nothing: every process has read the same files, and nothing random is added."""

    def sum_gradients(self, group: ProcessGroup) -> None:
        """Do nothing: the backward passes have done it."""

    def end_passes(self) -> None:
        """Let go of the weights that forward passes gathered."""
        for part in self._sharded:
            part.reshard()


def _list_blocks(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Return the repeated blocks of a transformer: members of its longest list of modules."""
    lists: list[Any] = [module for module in model.modules() if isinstance(module, torch.nn.ModuleList)]
    return list(max(lists, key=len, default=[]))
