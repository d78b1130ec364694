"""Rules about memory, speed and padding."""

from itertools import pairwise
from typing import Final

from registry.artifacts.findings import Severity
from training.engine.handbook.lookup import get_treatment
from training.engine.handbook.rows import HandbookRow
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import RunHistory
from training.engine.monitor.rule import Moment, StepRule
from training.engine.monitor.statistics import median

MIB: Final = 1 << 20

SPEED_START: Final = 5
"""The first steps allocate memory and choose kernels."""
SPEED_WINDOW: Final = 50
SLOW_FRACTION: Final = 0.5
"""Of the speed at the start, or of what was expected: a neighbour on the same processor takes a quarter for a
while (measured), a half that lasts is a fault."""

PADDING_WINDOW: Final = 50
PADDING_STEPS: Final = 20
PADDING_WASTE: Final = 0.3
"""Guide 4.3: batching by length gains 20 to 40 %, which is what padding of 0.2 to 0.3 costs; without it
padding comes to 0.7."""

LEAK_START: Final = 30
"""Allocators grow to their working size in the first steps."""
LEAK_WINDOW: Final = 200
LEAK_STEPS: Final = 100
NUM_PARTS: Final = 4
LEAK_FRACTION: Final = 0.08
LEAK_PART_FRACTION: Final = 0.01
LEAK_BYTES: Final = 64 * MIB

EVALUATION_FRACTION: Final = 0.03
EVALUATION_BYTES: Final = 32 * MIB
NUM_EVALUATIONS: Final = 2
"""After the first, which may allocate buffers that stay."""


def _find_falling_speed(history: RunHistory) -> Finding | None:
    num = len(history)
    if not history.begins_at_start or num < SPEED_START + 2 * SPEED_WINDOW:
        return None
    before = _speed(history, SPEED_START, SPEED_START + SPEED_WINDOW)
    after = _speed(history, num - SPEED_WINDOW, num)
    if after >= SLOW_FRACTION * before:
        return None
    return Finding(
        code="monitor/throughput-falls",
        row=HandbookRow.THROUGHPUT_LOW,
        severity=Severity.WARNING,
        step=history.step_at(-SPEED_WINDOW),
        message=(
            f"{after:.3g} tokens per second (padding included) in the last {SPEED_WINDOW} steps, "
            f"{before:.3g} at the "
            "start."
        ),
        evidence={"tokens_per_second": after, "tokens_per_second_at_start": before},
    )


def _find_low_speed(history: RunHistory) -> Finding | None:
    expected, num = history.facts.expected_tokens_per_second, len(history)
    if expected is None or num < SPEED_START + SPEED_WINDOW:
        return None
    measured = _speed(history, num - SPEED_WINDOW, num)
    if measured >= SLOW_FRACTION * expected:
        return None
    return Finding(
        code="monitor/throughput-low",
        row=HandbookRow.THROUGHPUT_LOW,
        severity=Severity.WARNING,
        step=history.step_at(-SPEED_WINDOW),
        message=(
            f"{measured:.3g} tokens per second (padding included) in the last {SPEED_WINDOW} steps; an "
            f"earlier run "
            f"of this kind did {expected:.3g}."
        ),
        evidence={"tokens_per_second": measured, "expected_tokens_per_second": expected},
    )


def _speed(history: RunHistory, start: int, stop: int) -> float:
    """Median over steps of computed tokens per second."""
    return median(
        [
            (history.num_tokens[i] + history.num_padded_tokens[i]) / max(history.seconds[i], 1e-9)
            for i in range(start, stop)
        ]
    )


def _find_padding(history: RunHistory) -> Finding | None:
    num = len(history)
    start = max(0, num - PADDING_WINDOW)
    if num - start < PADDING_STEPS:
        return None
    padded, real = sum(history.num_padded_tokens[start:]), sum(history.num_tokens[start:])
    fraction = padded / max(1.0, padded + real)
    if fraction <= PADDING_WASTE:
        return None
    return Finding(
        code="monitor/padding-waste",
        row=HandbookRow.PADDING_WASTE,
        severity=Severity.WARNING,
        step=history.step_at(start),
        message=f"{fraction:.0%} of the tokens computed in the last {num - start} steps were padding.",
        evidence={"padding_fraction": fraction, "num_steps": num - start},
    )


def _find_leak(history: RunHistory) -> Finding | None:
    first = max(LEAK_START, len(history) - LEAK_WINDOW)
    window = history.memory_bytes[first:]
    if len(window) < LEAK_STEPS:
        return None
    size = len(window) // NUM_PARTS
    levels = [median(window[part * size : (part + 1) * size]) for part in range(NUM_PARTS)]
    growth = levels[-1] - levels[0]
    rises = all(after - before >= LEAK_PART_FRACTION * levels[0] for before, after in pairwise(levels))
    if not rises or growth < max(LEAK_FRACTION * levels[0], LEAK_BYTES):
        return None
    per_step = growth / (size * (NUM_PARTS - 1))
    return Finding(
        code="monitor/memory-grows",
        row=HandbookRow.OUT_OF_MEMORY_LATER,
        severity=Severity.WARNING,
        step=history.step_at(first),
        message=(
            f"Memory in use grew from {levels[0] / MIB:.0f} to {levels[-1] / MIB:.0f} MiB in {len(window)} "
            f"steps, "
            f"about {per_step / MIB:.2g} MiB in each: something keeps tensors of earlier steps."
        ),
        evidence={"memory_bytes_before": levels[0], "memory_bytes": levels[-1], "bytes_per_step": per_step},
        treatment=get_treatment(HandbookRow.OUT_OF_MEMORY_LATER, 2),
    )


def _find_growing_evaluation(history: RunHistory) -> Finding | None:
    recent = history.held_out[-NUM_EVALUATIONS:]
    if len(history.held_out) <= NUM_EVALUATIONS:
        return None
    growths = [record.memory_after_bytes - record.memory_before_bytes for record in recent]
    least = [max(EVALUATION_FRACTION * record.memory_before_bytes, EVALUATION_BYTES) for record in recent]
    # What is given back before the next evaluation was a buffer, not a leak.
    kept = recent[-1].memory_before_bytes - recent[0].memory_before_bytes
    if any(growth < bound for growth, bound in zip(growths, least, strict=True)) or kept < least[0]:
        return None
    shown = " and ".join(f"{growth / MIB:.0f}" for growth in growths)
    return Finding(
        code="monitor/memory-grows-at-evaluation",
        row=HandbookRow.MEMORY_GROWS_AT_EVALUATION,
        severity=Severity.WARNING,
        step=recent[0].step,
        message=(
            f"The last {len(recent)} measurements of the held-out loss left {shown} MiB more in use than "
            f"before: "
            "they keep graphs or activations."
        ),
        evidence={
            "growth_bytes": float(growths[-1]),
            "memory_before_bytes": float(recent[-1].memory_before_bytes),
            "memory_after_bytes": float(recent[-1].memory_after_bytes),
        },
    )


RULES: Final = (
    StepRule(("monitor/memory-grows",), "MISSION D3, T5; guide 6.2", Moment.STEP, _find_leak),
    StepRule(
        ("monitor/memory-grows-at-evaluation",),
        "MISSION D3; guide 6.2",
        Moment.HELD_OUT,
        _find_growing_evaluation,
    ),
    StepRule(("monitor/throughput-falls",), "MISSION D3, D5; guide 6.2", Moment.STEP, _find_falling_speed),
    StepRule(("monitor/throughput-low",), "MISSION D3, D5; guide 6.2", Moment.STEP, _find_low_speed),
    StepRule(("monitor/padding-waste",), "MISSION D3, D4; guide 4.3", Moment.STEP, _find_padding),
)
