"""The child process of a job: started in a session of its own, stopped with everything it started."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

GRACE_SECONDS = 10.0
"""How long a child may take to end after SIGTERM, before SIGKILL."""
_SECRET_PREFIXES = ("ASSAY_", "AWS_")
_SECRET_NAMES = frozenset({"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "ARTIFACT_STORE"})


class ChildProcess:
    """One running `python -m workers.job`.

    Its standard input is a pipe that this process holds open: should this process be killed, the pipe
    closes and the child ends its own group. A context manager; nothing of the group is left when it is
    over.
    """

    def __init__(
        self, *, workdir: Path, log_path: Path, project_root: Path, kept: Path | None = None
    ) -> None:
        """Starts the child in a work folder; its output is appended to the log.

        Args:
            workdir: The folder with spec.json.
            log_path: The log.
            project_root: Where the packages are.
            kept: The folder that outlives attempts; None gives the child an empty one of its own.
        """
        options = [] if kept is None else ["--kept", str(kept)]
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "workers.job", str(workdir), "--watch-stdin", *options],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=project_root,
                env=child_environment(),
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop(grace_seconds=0.0)
        if self._process.stdin is not None:
            self._process.stdin.close()

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its group."""
        return self._process.pid

    def wait(self, timeout_seconds: float) -> int | None:
        """Waits for the end; returns the exit status (negative for a signal), None when it still runs."""
        try:
            return self._process.wait(timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ends the child and its whole group: SIGTERM, then SIGKILL after the grace."""
        if grace_seconds > 0 and self._process.poll() is None:
            self._signal(signal.SIGTERM)
            # A stopped process (SIGSTOP) sees no SIGTERM before it goes on.
            self._signal(signal.SIGCONT)
            self.wait(grace_seconds)
        # Also after the child's own end: what it started may be alive and hold the accelerator.
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


def child_environment() -> dict[str, str]:
    """Returns this process's environment without what is no business of a job: secrets and addresses."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in _SECRET_NAMES and not name.startswith(_SECRET_PREFIXES)
    }
