"""The memory ledger of a plan."""

from collections.abc import Sequence
from dataclasses import replace

from training.engine.errors import ConfigInvalid
from training.engine.layer_choice import select_layers
from training.engine.lint.plan import TrainingPlan
from training.engine.memory.estimate import MemoryEstimate, MemoryRequest, estimate_memory
from training.engine.memory.model_shape import ModelShape


def list_target_leaves(plan: TrainingPlan) -> tuple[str, ...]:
    """Return the last parts of the target modules' names, each once."""
    return tuple(dict.fromkeys(name.rpartition(".")[2] for name in plan.config.lora.target_modules))


def split_targets(shape: ModelShape, leaves: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the targets that the shape has, and those that it does not have."""
    names = {linear.name for linear in shape.list_linear()}
    return tuple(leaf for leaf in leaves if leaf in names), tuple(
        leaf for leaf in leaves if leaf not in names
    )


def request_of(plan: TrainingPlan, shape: ModelShape) -> MemoryRequest:
    """Return the request for the memory of a plan; targets that the shape lacks are left out."""
    config = plan.config
    try:
        layers = select_layers(config.lora.layers, shape.num_layers)
    except ConfigInvalid:
        layers = None  # a rule of its own says so
    return MemoryRequest(
        method=config.method,
        batch_size=config.training.per_device_batch_size,
        length_tokens=plan.longest_row_tokens,
        rank=config.lora.r,
        target_modules=split_targets(shape, list_target_leaves(plan))[0],
        num_lora_layers=None if layers is None else len(layers),
        has_checkpointing=config.training.gradient_checkpointing,
    )


def estimate_plan(
    plan: TrainingPlan, *, method: str | None = None, has_checkpointing: bool | None = None
) -> MemoryEstimate | None:
    """Return the ledger of a plan, or of one with another method or checkpointing; None without a shape."""
    if plan.shape is None:
        return None
    request = request_of(plan, plan.shape)
    return estimate_memory(
        plan.shape,
        replace(
            request,
            method=method or request.method,
            has_checkpointing=request.has_checkpointing if has_checkpointing is None else has_checkpointing,
        ),
    )
