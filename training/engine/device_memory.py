"""How much memory a training uses: on the device, or the process's own without one."""

import resource
from pathlib import Path
from typing import Final

import torch

_PAGE_BYTES: Final = resource.getpagesize()
_STATM: Final = Path("/proc/self/statm")


class MemoryMeter:
    """Reads the memory in use and its peak.

    Args:
        device: Of the training. On a GPU, bytes that torch has allocated there; else the resident set of this
            process.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._earlier_peak = 0

    def read_in_use_bytes(self) -> int:
        """Return the memory in use now."""
        if self._device.type == "cuda":
            return torch.cuda.memory_allocated(self._device)
        return int(_STATM.read_text(encoding="ascii").split()[1]) * _PAGE_BYTES

    def read_peak_bytes(self) -> int:
        """Return the highest use since the process began, on a GPU since `restart_peak`."""
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def read_highest_bytes(self) -> int:
        """Return the highest use of all, whatever was restarted in between."""
        return max(self._earlier_peak, self.read_peak_bytes())

    def restart_peak(self) -> bool:
        """Let the peak begin anew; return whether that can be done here (on a GPU only)."""
        if self._device.type != "cuda":
            return False
        self._earlier_peak = self.read_highest_bytes()
        torch.cuda.reset_peak_memory_stats(self._device)
        return True
