"""Processes that talk through torch.distributed: gloo on a CPU, NCCL where each has a GPU of its own."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

import torch
from torch import distributed

from training.engine.parallel.place import ProcessPlace

TIMEOUT: Final = timedelta(minutes=30)
"""How long a process waits for another: longer than a checkpoint or a merge of measurements takes."""


class DistributedGroup:
    """The processes of torch's default group.

    Args:
        device: On which numbers travel: that of the backend.

    Attributes:
        rank: Number of this process, from 0.
        size: Number of processes.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.rank = distributed.get_rank()
        self.size = distributed.get_world_size()

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace every gradient by the sum over all processes, in one message per number format.

        A process that had no batch adds zeros.
        """
        for alike in _group_by_dtype(parameters):
            flat = torch.cat([_gradient_or_zeros(parameter).flatten() for parameter in alike])
            distributed.all_reduce(flat)
            parts = torch.split(flat, [parameter.numel() for parameter in alike])
            for parameter, part in zip(alike, parts, strict=True):
                parameter.grad = part.view_as(parameter)

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Return the sums over all processes, in float64."""
        sums = torch.tensor(numbers, dtype=torch.float64, device=self._device)
        distributed.all_reduce(sums)
        return tuple(sums.tolist())

    def copy_from_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Overwrite the tensors with those of process 0."""
        for tensor in tensors:
            distributed.broadcast(tensor, src=0)

    def wait_for_all(self) -> None:
        """Return when every process has come here."""
        self.sum_numbers(0.0)


@contextmanager
def join_group(place: ProcessPlace) -> Iterator[DistributedGroup]:
    """Meet the other processes, and leave them at the end.

    Each process takes the GPU of its number on its machine, shared where there are fewer; without one, the
    CPU.
    """
    num_devices = torch.cuda.device_count()
    if num_devices:
        torch.cuda.set_device(place.local_rank % num_devices)
    # NCCL refuses processes that share a GPU.
    has_own_device = num_devices >= place.local_size
    distributed.init_process_group(
        "nccl" if has_own_device else "gloo",
        init_method=place.rendezvous,
        rank=place.rank,
        world_size=place.size,
        timeout=TIMEOUT,
    )
    try:
        yield DistributedGroup(torch.device("cuda" if has_own_device else "cpu"))
    finally:
        distributed.destroy_process_group()


def default_num_processes() -> int:
    """Return the number of CUDA devices, 1 without any."""
    return max(1, torch.cuda.device_count())


def _group_by_dtype(parameters: Iterable[torch.nn.Parameter]) -> list[list[torch.nn.Parameter]]:
    groups: dict[torch.dtype, list[torch.nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.dtype, []).append(parameter)
    return list(groups.values())


def _gradient_or_zeros(parameter: torch.nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
