"""What a process of a training tells the one that started it: JSON, a line each, through a pipe."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from training.engine.progress import RunReporter
from training.engine.step_record import HeldOutRecord, Observers, StepObserver, StepRecord


class MessageWriter:
    """A reporter and observer that passes everything on.

    Args:
        descriptor: Open for writing; it is closed with the process.
    """

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace", buffering=1)

    def progress(self, fraction: float, message: str) -> None:
        """Pass on progress."""
        self.write("progress", {"fraction": fraction, "message": message})

    def log(self, level: str, message: str) -> None:
        """Pass on a log line."""
        self.write("log", {"level": level, "message": message})

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Pass on measured values."""
        self.write("metric", {"step": step, "values": dict(values)})

    def record(self, name: str, values: Mapping[str, Any]) -> None:
        """Pass on a document."""
        self.write("record", {"name": name, "values": dict(values)})

    def on_step(self, record: StepRecord) -> None:
        """Pass on a step."""
        self.write("step", asdict(record))

    def on_held_out(self, record: HeldOutRecord) -> None:
        """Pass on a measurement."""
        self.write("held_out", asdict(record))

    def write(self, kind: str, content: Mapping[str, Any]) -> None:
        """Write one message."""
        self._file.write(json.dumps({"kind": kind, "content": content}) + "\n")


class MessageReader:
    """Hands messages to a reporter and to observers, as if they had been there.

    Args:
        report: Of the training.
        observers: Of the training.
    """

    def __init__(self, report: RunReporter, observers: Sequence[StepObserver]) -> None:
        self._report = report
        self._observers = Observers(observers)

    def deliver(self, kind: str, content: Mapping[str, Any]) -> None:
        """Deliver one message.

        Raises:
            ValueError: The kind is unknown.
        """
        match kind:
            case "progress":
                self._report.progress(content["fraction"], content["message"])
            case "log":
                self._report.log(content["level"], content["message"])
            case "metric":
                self._report.metric(content["step"], content["values"])
            case "record":
                self._report.record(content["name"], content["values"])
            case "step":
                self._observers.on_step(StepRecord(**content))
            case "held_out":
                self._observers.on_held_out(HeldOutRecord(**content))
            case _:
                raise ValueError(f"unknown message {kind!r}")
