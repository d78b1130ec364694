"""Progress of transfers and jobs on stderr: bars on a terminal, dated lines elsewhere."""

import time
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Protocol, Self

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from client.cli.console import Output
from client.models import JobProgress
from client.progress import TransferProgress, format_bytes
from client.safe_text import shorten, visible

_LINE_INTERVAL_SECONDS = 10.0
_LINE_STEP_FRACTION = 0.1
_MAX_MESSAGE_CHARACTERS = 100


class Display(TransferProgress, Protocol):
    """Listener of transfers and jobs, shown while its context is open."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Stop showing."""
        ...

    def show_job(self, state: str, job: JobProgress | None) -> None:
        """Show where something is: its own state, and the job it waits for (None: none)."""
        ...


def make_display(output: Output) -> Display:
    """Return the display that suits stderr."""
    return BarDisplay(output) if output.is_live else LineDisplay(output)


class _DetailColumn(ProgressColumn):
    """What stands right of the bar: bytes and speed of a transfer, the message of a job."""

    def render(self, task: Task) -> Text:
        """Return the cell of one task."""
        message = task.fields.get("message")
        if message is not None:
            return Text(visible(shorten(str(message), _MAX_MESSAGE_CHARACTERS)), overflow="ellipsis")
        amount = f"{format_bytes(task.completed)} of {format_bytes(task.total or 0)}"
        return Text(f"{amount}, {format_bytes(task.speed)}/s" if task.speed else amount)


class BarDisplay:
    """Bars on a terminal. A stage that ends stays as a full bar."""

    def __init__(self, output: Output) -> None:
        """Prepare the bars; nothing is drawn before the context is entered."""
        self._output = output
        self._progress = Progress(
            _NameColumn(),
            BarColumn(bar_width=30),
            TaskProgressColumn(markup=False),
            _DetailColumn(),
            TimeElapsedColumn(),
            console=output.err,
        )
        self._transfer: TaskID | None = None
        self._job: TaskID | None = None
        self._job_id: str | None = None

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Draw a last time and leave the bars where they are."""
        self._progress.stop()

    def start(self, description: str, total_bytes: int) -> None:
        """Add a bar for a transfer."""
        self._transfer = self._progress.add_task(description, total=max(1, total_bytes))

    def advance(self, num_bytes: int) -> None:
        """Move the transfer's bar."""
        if self._transfer is not None:
            self._progress.advance(self._transfer, num_bytes)

    def note(self, message: str) -> None:
        """Write a line above the bars."""
        self._output.notice(message)

    def show_job(self, state: str, job: JobProgress | None) -> None:
        """Move the bar of the present job; a new job gets a new bar."""
        if job is None:
            self._end_job()
            return
        if self._job is None or job.id != self._job_id:
            self._end_job()
            self._job = self._progress.add_task(visible(job.kind), total=1.0, message="")
            self._job_id = job.id
        message = job.message or job.state
        self._progress.update(self._job, completed=min(1.0, max(0.0, job.fraction)), message=message)

    def _end_job(self) -> None:
        if self._job is not None:
            self._progress.update(self._job, completed=1.0, message="")
            self._progress.stop_task(self._job)
        self._job = self._job_id = None


class _NameColumn(ProgressColumn):
    """The task's name; rich's own column would read markup in it."""

    def render(self, task: Task) -> Text:
        """Return the cell of one task."""
        return Text(visible(task.description))


class LineDisplay:
    """Dated lines: at each change of state or job, each tenth of the way, and at least every ten seconds of
    a transfer.
    """

    def __init__(self, output: Output, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare the lines. ``clock``: monotonic seconds."""
        self._output = output
        self._clock = clock
        self._lock = Lock()
        self._description = ""
        self._total_bytes = 0
        self._done_bytes = 0
        self._said_seconds = 0.0
        self._said_job: tuple[str, str | None, str | None, int] | None = None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: lines are complete as they are."""

    def start(self, description: str, total_bytes: int) -> None:
        """Write the line that begins a transfer."""
        with self._lock:
            self._description, self._total_bytes, self._done_bytes = description, total_bytes, 0
            self._said_seconds = self._clock()
        self._output.notice(f"{description} {format_bytes(total_bytes)}")

    def advance(self, num_bytes: int) -> None:
        """Count, and write a line now and then."""
        with self._lock:
            self._done_bytes += num_bytes
            now_seconds = self._clock()
            if now_seconds - self._said_seconds < _LINE_INTERVAL_SECONDS:
                return
            self._said_seconds = now_seconds
            line = (
                f"{self._description}: {format_bytes(self._done_bytes)} of {format_bytes(self._total_bytes)}"
            )
        self._output.notice(line)

    def note(self, message: str) -> None:
        """Write the message."""
        self._output.notice(message)

    def show_job(self, state: str, job: JobProgress | None) -> None:
        """Write a line when something worth one has changed."""
        step = 0 if job is None else int(job.fraction / _LINE_STEP_FRACTION)
        key = (state, job.id if job else None, job.state if job else None, step)
        if key == self._said_job:
            return
        self._said_job = key
        if job is None:
            self._output.notice(state)
            return
        message = f" {shorten(job.message, _MAX_MESSAGE_CHARACTERS)}" if job.message else ""
        self._output.notice(f"{state}: {job.kind} {job.state} {100 * job.fraction:.0f} %{message}")
