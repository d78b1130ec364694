"""Which of several processes this one is."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import distributed


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPlace:
    """The place of a process among those that train together.

    Attributes:
        rank: Number of this process, from 0.
        size: Number of processes.
        local_rank: Number of this process on its machine, from 0.
        local_size: Number of processes on its machine.
        rendezvous: Where they meet, as torch's ``init_method``.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    rendezvous: str

    def to_json(self) -> dict[str, Any]:
        """Return the values; ``ProcessPlace(**values)`` gives an equal place."""
        return {name: getattr(self, name) for name in self.__slots__}


def list_places(num_processes: int, folder: Path) -> list[ProcessPlace]:
    """Return the places of processes of one machine, which meet at a file in the folder, not made yet."""
    return [
        ProcessPlace(
            rank=rank,
            size=num_processes,
            local_rank=rank,
            local_size=num_processes,
            rendezvous=f"file://{folder.resolve() / 'rendezvous'}",
        )
        for rank in range(num_processes)
    ]


def find_torchrun_place() -> ProcessPlace | None:
    """Return the place that torchrun gave this process, by its variables; None when it was started alone.

    They are torchrun's interface to what it starts, no setting of Assay's.
    """
    if not distributed.is_torchelastic_launched():
        return None
    return ProcessPlace(
        rank=int(os.environ["RANK"]),
        size=int(os.environ["WORLD_SIZE"]),
        local_rank=int(os.environ["LOCAL_RANK"]),
        local_size=int(os.environ["LOCAL_WORLD_SIZE"]),
        rendezvous="env://",
    )
