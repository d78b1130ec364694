"""An optimiser's state by the names of the parameters, for checkpoints."""

from collections.abc import Mapping

import torch

from training.engine.sharded_tensors import gather_whole, spread_like


def read_moments(
    optimiser: torch.optim.Optimizer, parameters: Mapping[str, torch.nn.Parameter]
) -> dict[str, dict[str, torch.Tensor]]:
    """Return, by name, the tensors that the optimiser keeps of each parameter, whole.

    Args:
        optimiser: One of torch's Adam family.
        parameters: All that it changes, by name.
    """
    return {
        name: {
            kind: gather_whole(value)
            for kind, value in optimiser.state[parameter].items()
            if isinstance(value, torch.Tensor)
        }
        for name, parameter in parameters.items()
        if parameter in optimiser.state
    }


def write_moments(
    optimiser: torch.optim.Optimizer,
    parameters: Mapping[str, torch.nn.Parameter],
    moments: Mapping[str, Mapping[str, torch.Tensor]],
) -> None:
    """Give the optimiser back what `read_moments` took, on the parameters' devices.

    Args:
        optimiser: Newly made over the same parameters.
        parameters: As in `read_moments`.
        moments: What it gave.
    """
    for name, tensors in moments.items():
        parameter = parameters[name]
        # torch keeps the count of steps on the CPU unless the optimiser is fused.
        optimiser.state[parameter] = {
            kind: value.clone() if kind == "step" else spread_like(value, parameter).clone()
            for kind, value in tensors.items()
        }
