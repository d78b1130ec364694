"""Dropout whose random numbers do not cost as much as the matrix products, for training on a CPU."""

import torch
from peft.tuners.lora import LoraLayer
from torch import nn

_LEVELS = 65_536


class BlockDropout(nn.Module):
    """Inverted dropout that takes four 16-bit random numbers out of each draw of the generator.

    torch's own draws one number per element, serially, which took a fifth of a training step of SmolLM2-135M
    (two cores, bf16). The probability is rounded to 1/65536. Random numbers come from the default generator,
    so that gradient checkpointing, which restores it, repeats the same mask.

    Args:
        p: Probability of a zero, 0 <= p < 1.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self._num_dropped_levels = round(p * _LEVELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x`` (any shape), zeroed at random and scaled by 1 / (1 - p); ``x`` itself in eval mode."""
        if not self.training or self._num_dropped_levels == 0:
            return x
        draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        levels = draws.view(torch.int16)[: x.numel()].view(x.shape)
        scale = _LEVELS / (_LEVELS - self._num_dropped_levels)
        return x * (levels >= self._num_dropped_levels - _LEVELS // 2).to(x.dtype).mul_(scale)

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"


def use_block_dropout(model: nn.Module) -> int:
    """Replace the dropouts of all LoRA layers of a model on the CPU; return how many were replaced."""
    num_replaced = 0
    for module in model.modules():
        if isinstance(module, LoraLayer):
            for name, dropout in module.lora_dropout.items():
                if isinstance(dropout, nn.Dropout):
                    module.lora_dropout[name] = BlockDropout(dropout.p)
                    num_replaced += 1
    return num_replaced
