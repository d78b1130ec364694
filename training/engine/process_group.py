"""The processes that train one model together; most trainings have one."""

from collections.abc import Iterable
from typing import Protocol

import torch


class ProcessGroup(Protocol):
    """Processes that hold the same weights and share the batches of every step.

    Attributes:
        rank: Number of this process, from 0; 0 writes files and reports.
        size: Number of processes.
    """

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""

    @property
    def size(self) -> int:
        """Number of processes."""

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Replace every gradient by the sum over all processes."""

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Return the sums over all processes, in float64."""

    def copy_from_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Overwrite the tensors with those of process 0."""

    def wait_for_all(self) -> None:
        """Return when every process has come here."""


class SingleProcess:
    """A process that trains alone."""

    rank = 0
    size = 1

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Leave the gradients as they are."""

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Return the numbers."""
        return numbers

    def copy_from_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Leave the tensors as they are."""

    def wait_for_all(self) -> None:
        """Return at once."""
