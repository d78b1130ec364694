"""Whole tensors out of sharded ones and back; ordinary tensors pass through."""

import torch
from torch.distributed.tensor import DTensor, distribute_tensor


def gather_whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return the whole tensor; all processes that share it must call this."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def spread_like(whole: torch.Tensor, model: torch.Tensor) -> torch.Tensor:
    """Return the part of a whole tensor that this process keeps, sharded and placed as ``model`` is.

    Every process must have the same whole tensor; nothing is sent.
    """
    if not isinstance(model, DTensor):
        return whole.to(model.device)
    return distribute_tensor(whole.to(model.device), model.device_mesh, model.placements, src_data_rank=None)
