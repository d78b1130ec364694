"""Rules about the first steps: does the loss move, and does it begin where it should?

The guide (seed 002, sections 4.3 and 6.1): the loss begins at 1.5 to 2.5 and falls fast in the first tens of
steps; when the first 50 are nearly flat, the learning rate is one of full fine-tuning, or the labels are
masked wrongly, or the template is foreign to the base.
"""

import math
from enum import Enum, auto
from typing import Final

from registry.artifacts.findings import Severity
from training.engine.handbook.lookup import get_treatment
from training.engine.handbook.rows import HandbookRow
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import RunHistory
from training.engine.monitor.rule import Moment, StepRule
from training.engine.monitor.statistics import median, standard_error_of_difference

JUDGED_STEPS: Final = 50
"""MISSION D3: the first 50 steps show whether the loss goes down."""
LEAST_STEPS: Final = 20
"""Shorter runs are not judged; one of 20 to 50 steps is judged at its end."""
LATEST_STEP: Final = 200
"""A loss that was too noisy to judge until then is left to the other rules."""
STEPS_AFTER_WARMUP: Final = 25
"""Half of the 50: in a long warm-up the first 50 steps have hardly any rate."""
NUM_START_STEPS: Final = 5
FLAT_FALL: Final = 0.05
"""A fall below this fraction of the first loss is none."""
SLOW_FALL: Final = 0.25
"""The same where the rate explains it. SmolLM2 on snips falls by four fifths in 50 steps at 5e-4."""
SURE_FALL: Final = 0.25
"""The fall plus two standard errors must stay below this (with `SLOW_FALL`, twice this), so that noise is not
taken for flatness."""
LEAP: Final = 1.2
"""Factor on the first loss above which a loss is not called flat."""
NOISE_FACTOR: Final = 4.0
"""Standard errors by which it must be above."""
CONSTANT_FRACTION: Final = 1e-6
"""Of the loss; what float32 sums differ by. With all labels at -100 the loss is 0 or constant (guide 6.1)."""
LOWEST_LOSS: Final = 0.5
"""A loss that begins below it, a third of the guide's lowest, has little to fall."""
HIGHEST_FULL_RATE: Final = 2e-5
"""Guide 4.2: full fine-tuning takes 1e-5 to 2e-5, and a LoRA hardly moves with it."""
FAR_TOO_HIGH_RATE: Final = 3e-3
"""Ten times the highest that is usual for a LoRA (guide 4.2)."""
FULL_FACTOR: Final = 0.1
"""Full fine-tuning takes a tenth of a LoRA's rate (guide 4.2)."""
USUAL_START: Final = (1.5, 2.5)
UNUSUAL_FACTOR: Final = 2.0
"""Only a loss this far outside the guide's band is mentioned: SmolLM2 begins at 3.9 on snips and learns
well."""
NO_GRADIENT: Final = 1e-8
NO_GRADIENT_STEPS: Final = 5


class _Cause(Enum):
    LOW_RATE = auto()
    HIGH_RATE = auto()
    DATA = auto()


def _find_flat(history: RunHistory) -> Finding | None:
    num = len(history)
    if not _is_time_to_judge(history):
        return None
    cause = _judge_rate(history)
    start, recent = history.mean_loss(0, NUM_START_STEPS), history.mean_loss(num // 2, num)
    if cause is _Cause.HIGH_RATE:
        start = min(start, history.losses[0])  # Such a rate makes the second step's loss leap already.
    highest = max(history.mean_loss(i, i + NUM_START_STEPS) for i in range(num - NUM_START_STEPS))
    if cause is not _Cause.HIGH_RATE and highest > LEAP * start + NOISE_FACTOR * _noise_fraction(history, 1):
        return None  # It leapt: that is no flatness, and the rule about divergence sees it.
    is_constant = max(history.losses) - min(history.losses) <= CONSTANT_FRACTION * start
    fall = 0.0 if is_constant else 1 - recent / start
    error = 0.0 if is_constant else 2 * _noise_fraction(history, start)
    if start < LOWEST_LOSS and not is_constant:
        return None
    limit, sure = (FLAT_FALL, SURE_FALL) if cause is _Cause.DATA else (SLOW_FALL, 2 * SURE_FALL)
    if not -FLAT_FALL - error < fall < limit or fall + error >= sure:
        return None
    return _tell_flat(history, start, recent, fall, cause)


def _judge_rate(history: RunHistory) -> _Cause:
    factor = 1.0 if history.facts.is_adapter else FULL_FACTOR
    if history.full_rate <= HIGHEST_FULL_RATE * factor * (1 + 1e-9):
        return _Cause.LOW_RATE
    return _Cause.HIGH_RATE if history.full_rate > FAR_TOO_HIGH_RATE * factor else _Cause.DATA


def _is_time_to_judge(history: RunHistory) -> bool:
    num = len(history)
    if num < LEAST_STEPS or num > LATEST_STEP:
        return False
    if history.is_over:
        return True
    return num >= JUDGED_STEPS and num - history.num_warmup_steps >= STEPS_AFTER_WARMUP


def _noise_fraction(history: RunHistory, start: float) -> float:
    """Standard error of the fall, as a fraction of the first loss."""
    half = history.losses[len(history) // 2 :]
    return standard_error_of_difference(half, num_first=NUM_START_STEPS, num_second=len(half)) / start


def _tell_flat(history: RunHistory, start: float, recent: float, fall: float, cause: _Cause) -> Finding:
    norms = [norm for norm in history.norms if not math.isnan(norm)]
    norm = median(norms) if norms else 0.0
    rate = max(history.rates)
    told = (
        f"The loss went from {start:.3g} to {recent:.3g} in {len(history)} steps, a change of {-fall:+.1%}, "
        f"at learning rates up to {rate:.2g} and a median gradient norm of {norm:.2g}"
    )
    usual = "a LoRA takes 1e-4 to 3e-4" if history.facts.is_adapter else "full fine-tuning takes 1e-5 to 2e-5"
    code, row, index, why = {
        _Cause.LOW_RATE: (
            "monitor/loss-flat-low-rate",
            HandbookRow.LOSS_FLAT,
            0,
            f"the rate is low, {usual}",
        ),
        _Cause.HIGH_RATE: (
            "monitor/loss-stuck-high-rate",
            HandbookRow.LOSS_OSCILLATES,
            0,
            f"the rate is far too high, {usual}",
        ),
        _Cause.DATA: (
            "monitor/loss-flat",
            HandbookRow.LOSS_FLAT,
            1,
            "the rate is a usual one, so look at labels, template and data",
        ),
    }[cause]
    return Finding(
        code=code,
        row=row,
        severity=Severity.ERROR if fall < FLAT_FALL else Severity.WARNING,
        step=history.first_step,
        message=f"{told}: {why}.",
        evidence={
            "first_loss": start,
            "recent_loss": recent,
            "fall_fraction": fall,
            "num_steps": len(history),
            "highest_learning_rate": rate,
            "median_gradient_norm": norm,
        },
        treatment=get_treatment(row, index),
    )


def _find_no_gradient(history: RunHistory) -> Finding | None:
    norms = history.norms[:NO_GRADIENT_STEPS]
    if len(norms) < NO_GRADIENT_STEPS or not all(norm <= NO_GRADIENT for norm in norms):
        return None
    return Finding(
        code="monitor/no-gradient",
        row=HandbookRow.NOT_TRAINABLE,
        severity=Severity.ERROR,
        step=history.first_step,
        message=(
            f"The gradient norm is {max(norms):.2g} at most in the first {len(norms)} steps: "
            "nothing is trained."
        ),
        evidence={"highest_gradient_norm": max(norms), "num_steps": len(norms)},
    )


def _find_unusual_start(history: RunHistory) -> Finding | None:
    if len(history) < NUM_START_STEPS:
        return None
    # The first step alone: high rates move the loss within five.
    loss = history.losses[0]
    low, high = USUAL_START[0] / UNUSUAL_FACTOR, USUAL_START[1] * UNUSUAL_FACTOR
    if low <= loss <= high:
        return None
    if loss > high:
        why = "the base may not know this template or language, or the labels are masked wrongly"
    else:
        why = "the base can do the task already, the answer stands in the input, or the prompt is in the loss"
    return Finding(
        code="monitor/start-loss-unusual",
        row=HandbookRow.WRONG_DATA,
        severity=Severity.INFO,
        step=history.first_step,
        message=f"The loss begins at {loss:.3g}; {USUAL_START[0]} to {USUAL_START[1]} are usual: {why}.",
        evidence={"first_loss": loss},
    )


RULES: Final = (
    StepRule(("monitor/no-gradient",), "MISSION D2, D3", Moment.STEP, _find_no_gradient, needs_start=True),
    StepRule(
        ("monitor/loss-flat", "monitor/loss-flat-low-rate", "monitor/loss-stuck-high-rate"),
        "MISSION D3, T5; guide 4.3, 6.1",
        Moment.STEP,
        _find_flat,
        needs_start=True,
    ),
    StepRule(
        ("monitor/start-loss-unusual",),
        "MISSION D3; guide 4.3",
        Moment.STEP,
        _find_unusual_start,
        needs_start=True,
    ),
)
