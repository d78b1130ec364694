"""torch's global generators, seeded inside a block and restored after it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def own_random_state(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch inside the block and restore its state after it.

    PEFT's initial weights and dropout draw from the global generators and take no other.
    """
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
