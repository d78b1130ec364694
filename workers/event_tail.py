"""Reading events.jsonl while the child writes it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from registry.choices import JobEventType
from registry.services.jobs import JobEventRecord
from workers.job.events import MAX_LINE_BYTES

MAX_BYTES_PER_READ = 1024**2
_LEVELS = frozenset({"info", "warning", "error"})
_TYPES = frozenset({JobEventType.PROGRESS, JobEventType.LOG, JobEventType.METRIC, JobEventType.RECORD})


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBatch:
    """What was new in the file.

    Attributes:
        events: In the order of the file. Of progress lines that follow each other only the last is kept: the
            database needs no thousand steps of one bar.
        fraction: The latest progress, 0-1; None when there was none.
        message: Its message; None when there was none.
    """

    events: tuple[JobEventRecord, ...]
    fraction: float | None = None
    message: str | None = None


class EventTail:
    """Follows one events.jsonl; a line counts when it is complete, a damaged one becomes a warning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def read_new(self) -> EventBatch:
        """Reads what was added since the last call, at most one mebibyte."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(MAX_BYTES_PER_READ)
        except FileNotFoundError:
            return EventBatch(events=())
        self._offset += len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest = b""
        events = [_parse(line) for line in lines if line.strip()]
        progress = [event for event in events if event.type == JobEventType.PROGRESS]
        last = progress[-1] if progress else None
        return EventBatch(
            events=tuple(_without_repeated_progress(events)),
            fraction=None if last is None else last.fraction,
            message=None if last is None else last.message,
        )

    def read_rest(self) -> Iterator[EventBatch]:
        """Reads to the end, after the child has ended."""
        while True:
            before = self._offset
            batch = self.read_new()
            if self._offset == before:
                return
            yield batch


def _without_repeated_progress(events: list[JobEventRecord]) -> Iterator[JobEventRecord]:
    for index, event in enumerate(events):
        following = events[index + 1] if index + 1 < len(events) else None
        if event.type == JobEventType.PROGRESS and following is not None and following.type == event.type:
            continue
        yield event


def _parse(line: bytes) -> JobEventRecord:
    try:
        if len(line) > MAX_LINE_BYTES:
            raise ValueError("longer than a line may be")
        value = json.loads(line)
        return _from_json(value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        text = f"The job wrote a line that is no event: {line[:200].decode('utf-8', 'replace')}"
        return JobEventRecord(at=datetime.now(UTC), type=JobEventType.LOG, level="warning", message=text)


def _from_json(value: Any) -> JobEventRecord:
    kind = value["type"]
    if kind not in _TYPES:
        raise ValueError(f"unknown type {kind!r}")
    at = datetime.fromisoformat(value["at"])
    level = value.get("level", "")
    fraction, step = value.get("fraction"), value.get("step")
    return JobEventRecord(
        at=at if at.tzinfo is not None else at.replace(tzinfo=UTC),
        type=kind,
        level=level if level in _LEVELS else "",
        message=str(value.get("message", "")),
        fraction=None if fraction is None else float(fraction),
        step=None if step is None else int(step),
        values=dict(value.get("values", {})),
    )
