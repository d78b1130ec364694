"""A reporter that remembers, for tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class RecordingReporter:
    fractions: list[float] = field(default_factory=list)
    logs: list[tuple[str, str]] = field(default_factory=list)
    metrics: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    records: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def progress(self, fraction: float, message: str) -> None:
        self.fractions.append(fraction)

    def log(self, level: str, message: str) -> None:
        self.logs.append((level, message))

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        self.metrics.append((step, dict(values)))

    def record(self, name: str, values: Mapping[str, Any]) -> None:
        self.records.append((name, dict(values)))
