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
MAX_LINE_BYTES = 256 * 1024
"""What the worker reads as one event; a longer document is left out, with a warning in its place."""
MAX_MESSAGE_CHARS = 4000
"""Longer messages are cut: they may hold what a model wrote."""


class EventWriter:
    """The reporter that the engines are given; may be used from several threads."""

    def __init__(self, path: Path) -> None:
        # A lone surrogate becomes the escape that JSON has for it.
        self._file = path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
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

    def record(self, name: str, values: Mapping[str, Any]) -> None:
        """Reports a document that is kept with the run; see `training.engine.progress.RunReporter`."""
        # Not as ASCII: escapes would double the size of Chinese texts.
        line = _to_line({"type": "record", "message": name, "values": dict(values)}, is_ascii=False)
        num_bytes = len(line.encode("utf-8", "backslashreplace"))
        if num_bytes > MAX_LINE_BYTES:
            self.log("warning", f"The document {name!r} has {num_bytes} bytes and is left out.")
            return
        self._write_line(line)

    def close(self) -> None:
        """Ends the file and brings it to the disk."""
        with self._lock:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def _write(self, event: Mapping[str, Any]) -> None:
        self._write_line(_to_line(event))

    def _write_line(self, line: str) -> None:
        with self._lock:
            self._file.write(line + "\n")


def _to_line(event: Mapping[str, Any], *, is_ascii: bool = True) -> str:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"at": at, **event}, allow_nan=False, ensure_ascii=is_ascii)


def _cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE_CHARS else message[: MAX_MESSAGE_CHARS - 1] + "…"
