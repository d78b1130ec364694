"""The processes of a stack: how each is started, when it is started again, how it is stopped."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from config.stack.linux import die_with_parent, read_start_time

FIRST_BACKOFF_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 15.0
HEALTHY_AFTER_SECONDS = 30.0
"""A process that ran this long starts again at once, with its count of failures forgotten."""
MAX_FAILURES = 8
"""So many failed starts in a row end the stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """One process of the stack.

    Attributes:
        name: Names its log file, too.
        command: Program and arguments.
        environment: All of it.
        log_path: Where standard output and error go; appended to.
        pass_fds: Open files that the process inherits.
        grace_seconds: How long it may take to end after SIGTERM.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log_path: Path
    pass_fds: tuple[int, ...] = ()
    grace_seconds: float = 20.0


class ManagedProcess:
    """A process that is started again when it dies, after a growing pause, until it has failed too often."""

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = spec
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._start_again_at = 0.0
        self._num_failures = 0
        self._last_status: int | None = None

    @property
    def pid(self) -> int | None:
        """Process id, None when it does not run."""
        return None if self._process is None else self._process.pid

    @property
    def has_given_up(self) -> bool:
        """Whether it failed too often to be started again."""
        return self._num_failures >= MAX_FAILURES

    def start(self) -> None:
        """Starts the process in a session of its own, bound to this process's life. Call it from the main
        thread.
        """
        with self.spec.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                list(self.spec.command),
                env=dict(self.spec.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self.spec.pass_fds,
                preexec_fn=die_with_parent(),
            )
        self._started_at = time.monotonic()

    def look(self) -> str | None:
        """Starts the process (again) when it is time; returns what is worth telling, None when nothing
        happened.
        """
        if self._process is None:
            if time.monotonic() >= self._start_again_at and not self.has_given_up:
                self.start()
                return f"{self.spec.name} was started again." if self._last_status is not None else None
            return None
        status = self._process.poll()
        if status is None:
            return None
        self._kill_group()
        self._process = None
        self._last_status = status
        ran_for = time.monotonic() - self._started_at
        self._num_failures = 1 if ran_for >= HEALTHY_AFTER_SECONDS else self._num_failures + 1
        pause = min(FIRST_BACKOFF_SECONDS * 2 ** (self._num_failures - 1), MAX_BACKOFF_SECONDS)
        self._start_again_at = time.monotonic() + pause
        how = describe_status(status)
        return f"{self.spec.name} ended with {how} after {ran_for:.0f} s; see {self.spec.log_path}."

    def terminate(self) -> None:
        """Asks the process to end."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self, deadline: float) -> bool:
        """Waits until the process has ended, or the deadline (of the monotonic clock); returns whether it
        has.
        """
        if self._process is None:
            return True
        try:
            self._process.wait(timeout=max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Ends the process and what is left of its group, at once."""
        if self._process is None:
            return
        self._kill_group()
        self._process.wait()
        self._process = None

    def identity(self) -> dict[str, int] | None:
        """Returns pid and start time, by which a later supervisor knows the process again."""
        pid = self.pid
        start_time = None if pid is None else read_start_time(pid)
        return None if pid is None or start_time is None else {"pid": pid, "start_time": start_time}

    def _kill_group(self) -> None:
        if self._process is None:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def describe_status(status: int) -> str:
    """Returns an exit status in words."""
    if status >= 0:
        return f"status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
