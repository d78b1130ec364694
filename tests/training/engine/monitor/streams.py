"""Streams of step records for tests of rules."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.training.engine.reporters import RecordingReporter
from training.engine.monitor.history import RunFacts
from training.engine.monitor.monitor import Monitor
from training.engine.step_record import HeldOutRecord, StepRecord

DEFAULTS: dict[str, Any] = {
    "gradient_norm": 0.5, "max_grad_norm": 1.0, "learning_rate": 2e-4, "num_tokens": 900,
    "num_trained_tokens": 200, "num_padded_tokens": 100, "seconds": 0.5, "memory_bytes": 10**9,
}  # fmt: skip


def make_step(step: int, loss: float, num_steps: int = 1000, **values: Any) -> StepRecord:
    return StepRecord(step=step, num_steps=num_steps, loss=loss, **{**DEFAULTS, **values})


def make_held_out(step: int, loss: float, before: int = 10**9, after: int = 10**9) -> HeldOutRecord:
    return HeldOutRecord(
        step=step, loss=loss, memory_before_bytes=before, memory_after_bytes=after, memory_peak_bytes=None
    )


def falling(num: int, *, start: float = 2.0, floor: float = 0.6, pace: float = 15.0) -> list[float]:
    """An exponential fall to a floor, as healthy runs have."""
    return [floor + (start - floor) * 2.718281828 ** (-step / pace) for step in range(num)]


def watch(
    losses: Sequence[float],
    *,
    held_out: Iterable[HeldOutRecord] = (),
    facts: RunFacts | None = None,
    num_steps: int = 1000,
    first_step: int = 1,
    **series: Any,
) -> Monitor:
    """Feed a monitor; each of ``series`` is one value for all steps or a list with one for each."""
    monitor = Monitor(RecordingReporter(), facts=facts)
    measured = {record.step: record for record in held_out}
    for index, loss in enumerate(losses):
        values = {name: value[index] if isinstance(value, list) else value for name, value in series.items()}
        monitor.on_step(make_step(first_step + index, loss, num_steps, **values))
        if first_step + index in measured:
            monitor.on_held_out(measured[first_step + index])
    return monitor


def told(monitor: Monitor) -> list[tuple[str, str, int]]:
    return [
        (finding.code.removeprefix("monitor/"), finding.severity.value, finding.step)
        for finding in monitor.findings
    ]
