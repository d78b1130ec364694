"""How an engine tells its caller what it is doing."""

from collections.abc import Mapping
from typing import Any, Protocol


class ProgressReporter(Protocol):
    """Receives progress, log lines and metric points while an engine runs."""

    def progress(self, fraction: float, message: str) -> None:
        """Take the finished fraction of the whole job, 0-1, and what is being done."""

    def log(self, level: str, message: str) -> None:
        """Take one log line; ``level`` is info, warning or error."""

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Take measured values of one step."""


class RunReporter(ProgressReporter, Protocol):
    """Also keeps documents with the run."""

    def record(self, name: str, values: Mapping[str, Any]) -> None:
        """Take a document, such as "preflight", "finding" or "not_finite".

        Args:
            name: What it is.
            values: JSON of at most 200 kB; every number is finite.
        """


class SilentReporter:
    """A reporter that drops everything."""

    def progress(self, fraction: float, message: str) -> None:
        """Drop progress."""

    def log(self, level: str, message: str) -> None:
        """Drop a log line."""

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Drop metric values."""

    def record(self, name: str, values: Mapping[str, Any]) -> None:
        """Drop a document."""
