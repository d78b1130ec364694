"""Who runs the stack of a home folder: a lock that dies with its holder, and a note for others to read."""

import fcntl
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.stack.layout import StackLayout
from config.stack.linux import read_start_time


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    """What the supervisor notes down.

    Attributes:
        pid: The supervisor.
        url: Address of the web process.
        is_ready: Whether it was ready at least once.
        processes: Name of a process -> pid and start time.
    """

    pid: int
    url: str
    is_ready: bool
    processes: Mapping[str, Mapping[str, int]]


class StackLock:
    """The right to run the stack of one home folder; the kernel gives it back when the holder dies."""

    def __init__(self, layout: StackLayout) -> None:
        self._path = layout.lock_path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Takes the lock; False when another process has it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Gives the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_stack_running(layout: StackLayout) -> bool:
    """Whether some process holds the lock of this home folder."""
    if not layout.lock_path.exists():
        return False
    lock = StackLock(layout)
    if not lock.acquire():
        return True
    lock.release()
    return False


def write_state(layout: StackLayout, state: StackState) -> None:
    """Writes the note, whole or not at all."""
    partial = layout.state_path.with_suffix(".partial")
    document = {
        "pid": state.pid,
        "url": state.url,
        "is_ready": state.is_ready,
        "processes": {name: dict(identity) for name, identity in state.processes.items()},
    }
    partial.write_text(json.dumps(document, indent=1), encoding="utf-8")
    partial.replace(layout.state_path)


def read_state(layout: StackLayout) -> StackState | None:
    """Reads the note; None when there is none that can be read."""
    try:
        value: dict[str, Any] = json.loads(layout.state_path.read_text(encoding="utf-8"))
        return StackState(
            pid=value["pid"], url=value["url"], is_ready=value["is_ready"], processes=value["processes"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def kill_leftovers(state: StackState, *, patience_seconds: float = 5.0) -> list[str]:
    """Kills the processes of a supervisor that died, as far as they live, with their groups; returns their
    names.
    """
    alive = {name: identity["pid"] for name, identity in state.processes.items() if _is_alive(identity)}
    for pid in alive.values():
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    _wait_until_gone([state.processes[name] for name in alive], patience_seconds)
    return sorted(alive)


def remove_stale_files(layout: StackLayout) -> None:
    """Removes what a killed stack left: the broker's socket and the note."""
    for path in (layout.broker_socket, layout.state_path):
        Path(path).unlink(missing_ok=True)


def _is_alive(identity: Mapping[str, int]) -> bool:
    return read_start_time(identity["pid"]) == identity["start_time"]


def _wait_until_gone(identities: Sequence[Mapping[str, int]], patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    while any(_is_alive(identity) for identity in identities) and time.monotonic() < deadline:
        time.sleep(0.05)
