"""events.jsonl: what a job says while it works.

One JSON object a line, written whole and at once, so that the worker can read the file while it grows.
"""

import json
import math
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

EVENTS_NAME = "events.jsonl"
MAX_MESSAGE_CHARS = 4000
"""Longer messages are cut: they may hold what a model wrote."""


class EventWriter:
    """The reporter that the engines are given; may be used from several threads."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def progress(self, fraction: float, message: str) -> None:
        """Reports that `fraction` (0-1) of the work is done."""
        share = min(max(fraction, 0.0), 1.0) if math.isfinite(fraction) else 0.0
        self._write({"type": "progress", "fraction": round(share, 4), "message": _cut(message)})

    def log(self, level: str, message: str) -> None:
        """Reports a line; `level` is info, warning or error."""
        self._write({"type": "log", "level": level, "message": _cut(message)})

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Reports named numbers that belong to a step; a number that is not finite is written as null."""
        numbers = {name: float(value) if math.isfinite(value) else None for name, value in values.items()}
        self._write({"type": "metric", "step": step, "values": numbers})

    def close(self) -> None:
        """Ends the file and brings it to the disk."""
        with self._lock:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def _write(self, event: Mapping[str, Any]) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"at": at, **event}, allow_nan=False)
        with self._lock:
            self._file.write(line + "\n")


def _cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE_CHARS else message[: MAX_MESSAGE_CHARS - 1] + "…"
