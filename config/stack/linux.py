"""What the supervisor asks of the kernel: dying with the parent, adopting orphans, who a process id is."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent dies, so that none can get away."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> Callable[[], None] | None:
    """Returns what a new child runs before its program, so that the kernel kills it when this process dies.

    None where the kernel has no such call; children then outlive a killed supervisor until the next start
    finds them.
    """
    if sys.platform != "linux":
        return None
    libc, parent = _libc(), os.getpid()

    def arm() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            # The parent died between the fork and the call.
            os.kill(os.getpid(), signal.SIGKILL)

    return arm


def read_start_time(pid: int) -> int | None:
    """Returns when a process started, in clock ticks since boot; None when there is no such process, or a
    zombie.

    Together with the id it names a process for good: ids are used again, start times are not.
    """
    fields = _read_stat(pid)
    return None if fields is None or fields[0] == "Z" else int(fields[19])


def list_children(pid: int) -> list[int]:
    """Lists the direct children of a process, zombies included."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [
        number for number in numbers if (fields := _read_stat(number)) is not None and int(fields[1]) == pid
    ]


def _read_stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name in the second field may hold spaces and brackets; the state is the first field after it.
    return text.rpartition(")")[2].split()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
