"""Whether the state of a training is finite."""

from collections.abc import Iterable, Mapping

import torch

from training.engine.checkpoints import Checkpoint
from training.engine.trained_model import TrainedModel


def is_finite(tensor: torch.Tensor) -> bool:
    """Return whether all values are finite; integer and 4-bit tensors always are."""
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor).all())


def list_bad_tensors(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Return the names of the trainables, and of the optimiser's moments, that are not finite."""
    bad = [name for name, tensor in checkpoint.trainables.items() if not is_finite(tensor)]
    for name, moments in checkpoint.moments.items():
        bad += [f"{kind} of {name}" for kind, tensor in moments.items() if not is_finite(tensor)]
    return tuple(sorted(bad))


def list_bad_parameters(model: torch.nn.Module) -> tuple[str, ...]:
    """Return the names of the parameters, frozen or not, that are not finite."""
    return tuple(
        strip_adapter(name)
        for name, parameter in model.named_parameters()
        if not is_finite(parameter.detach())
    )


def find_largest_parameter(model: torch.nn.Module) -> tuple[str, float]:
    """Return the name of the parameter with the largest magnitude, and that magnitude."""
    largest = ("", 0.0)
    for name, parameter in model.named_parameters():
        if parameter.is_floating_point() and parameter.numel():
            magnitude = float(torch.linalg.vector_norm(parameter.detach(), ord=float("inf")))
            largest = max(largest, (strip_adapter(name), magnitude), key=lambda item: item[1])
    return largest


def copy_state(checkpoint: Checkpoint) -> Checkpoint:
    """Return the state with tensors of its own, on the CPU."""
    return Checkpoint(
        step=checkpoint.step,
        trainables=copy_tensors(checkpoint.trainables),
        moments={name: copy_tensors(tensors) for name, tensors in checkpoint.moments.items()},
        best={},
        progress=dict(checkpoint.progress),
    )


def copy_tensors(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return copies on the CPU."""
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}


def write_trainables(model: TrainedModel, values: Mapping[str, torch.Tensor]) -> None:
    """Give the model's trainable parameters these values."""
    with torch.no_grad():
        for name, parameter in model.trainables.items():
            parameter.copy_(values[name])


def measure_norm(tensors: Iterable[torch.Tensor]) -> float:
    """Return the Euclidean norm over all of them; infinite or NaN where they are."""
    norms = [torch.linalg.vector_norm(tensor.detach().double()) for tensor in tensors]
    return float(torch.linalg.vector_norm(torch.stack(norms))) if norms else 0.0


def strip_adapter(name: str) -> str:
    """Return a module's or parameter's name without what PEFT puts around it."""
    return name.removeprefix("base_model.model.").replace(".base_layer", "")
