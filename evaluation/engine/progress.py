"""What the engine asks of whoever runs it: a place to report progress to."""

from collections.abc import Mapping
from typing import Protocol


class ProgressReporter(Protocol):
    """Receives progress, log lines and metric points of a running evaluation."""

    def progress(self, fraction: float, message: str) -> None:
        """Report that ``fraction`` (0-1) of the work is done."""

    def log(self, level: str, message: str) -> None:
        """Report a line; ``level`` is info, warning or error."""

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Report named numbers that belong to a step."""


class SilentReporter:
    """A reporter that keeps nothing, for callers that do not care."""

    def progress(self, fraction: float, message: str) -> None:
        """Ignore the progress."""

    def log(self, level: str, message: str) -> None:
        """Ignore the line."""

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Ignore the numbers."""


class PartReporter:
    """Maps the progress of one part of the work onto its share of the whole.

    Args:
        parent: Where to report to.
        start: Fraction of the whole at which the part begins, 0-1.
        end: Fraction of the whole at which it ends, 0-1.
        label: Put before each message.
    """

    def __init__(self, parent: ProgressReporter, start: float, end: float, label: str) -> None:
        """Keep the parent and the span."""
        self._parent = parent
        self._start = start
        self._end = end
        self._label = label

    def progress(self, fraction: float, message: str) -> None:
        """Report the part's progress as progress of the whole."""
        whole = self._start + (self._end - self._start) * min(max(fraction, 0.0), 1.0)
        self._parent.progress(whole, f"{self._label}: {message}")

    def log(self, level: str, message: str) -> None:
        """Pass the line on under the part's label."""
        self._parent.log(level, f"{self._label}: {message}")

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Pass the numbers on."""
        self._parent.metric(step, values)
