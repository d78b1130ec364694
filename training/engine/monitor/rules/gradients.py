"""Rules about the gradient norm, which says more about a training's health than its loss (guide 4.3)."""

import math
from typing import Final

from registry.artifacts.findings import Severity
from training.engine.handbook.lookup import get_treatment
from training.engine.handbook.rows import HandbookRow
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import RunHistory
from training.engine.monitor.rule import Moment, StepRule
from training.engine.monitor.statistics import median

START_STEPS: Final = 50
"""MISSION D3's first steps: gradients are large then in healthy runs too."""
WINDOW: Final = 100
CLIPPED_OFTEN: Final = 0.5
"""Most steps of the window. SmolLM2 on snips: nearly all of the first 60, a fifth of the next 90, none
later."""
USUAL_LIMIT: Final = 1.0
"""MISSION D1."""
LONG_TAIL: Final = 5.0
"""Largest norm in units of the median that points at single examples instead of the rate."""

SMALL_NORM: Final = 0.1
SMALL_STEPS: Final = 50
SMALL_FRACTION: Final = 0.9
LEARNT_LOSS: Final = 0.1
"""MISSION T3: below it there is little left to learn, and small gradients are right."""
FALLING: Final = 0.02
"""A fall of the loss by this fraction within the window counts as learning."""
FULL_RATE_FRACTION: Final = 0.5
"""Below half of the highest rate the schedule is ending, and no fall is expected."""

OVERFLOW_WINDOW: Final = 50
OVERFLOW_START: Final = 20
"""The loss scale begins at 65536 and is halved at each overflow: 16 overflows bring it to 1."""
OVERFLOW_FRACTION: Final = 0.2
OVERFLOW_RUN: Final = 20


def _find_clipping(history: RunHistory) -> Finding | None:
    num = len(history)
    if num < WINDOW or history.last_step < START_STEPS + WINDOW:
        return None
    norms, limit = history.norms[num - WINDOW :], history.max_norms[-1]
    num_clipped = sum(norm > limit for norm in norms)
    if num_clipped < CLIPPED_OFTEN * WINDOW:
        return None
    known = [norm for norm in norms if not math.isnan(norm)]
    middle, largest = median(known), max(known)
    has_tail = largest > LONG_TAIL * middle
    why = "single examples may be abnormal" if has_tail else "the rate is rather high for these data"
    if limit < USUAL_LIMIT and middle <= USUAL_LIMIT:
        why = f"the limit is below the usual {USUAL_LIMIT:g}"
    return Finding(
        code="monitor/gradient-clipped-often",
        row=HandbookRow.GRADIENT_CLIPPED_OFTEN,
        severity=Severity.WARNING,
        step=history.step_at(-WINDOW),
        message=(
            f"{num_clipped} of the last {WINDOW} steps were clipped to {limit:g}; the median norm is "
            f"{middle:.2g}, "
            f"the largest {largest:.2g}: {why}."
        ),
        evidence={
            "clipped_fraction": num_clipped / WINDOW,
            "median_gradient_norm": middle,
            "largest_gradient_norm": largest,
        },
        treatment=get_treatment(HandbookRow.GRADIENT_CLIPPED_OFTEN, 0 if has_tail else 1),
    )


def _find_small(history: RunHistory) -> Finding | None:
    num = len(history)
    if num < 2 * SMALL_STEPS or history.num_warmup_steps > num - SMALL_STEPS:
        return None
    norms = history.norms[num - SMALL_STEPS :]
    if sum(norm < SMALL_NORM for norm in norms) < SMALL_FRACTION * SMALL_STEPS:
        return None
    middle = num - SMALL_STEPS // 2
    before, after = history.mean_loss(num - SMALL_STEPS, middle), history.mean_loss(middle, num)
    if after < LEARNT_LOSS or history.rates[-1] < FULL_RATE_FRACTION * max(history.rates):
        return None
    is_falling = after < (1 - FALLING) * before
    moves = "and the loss still falls" if is_falling else "and the loss does not fall"
    return Finding(
        code="monitor/gradient-small",
        row=HandbookRow.GRADIENT_SMALL,
        severity=Severity.INFO if is_falling else Severity.WARNING,
        step=history.step_at(-SMALL_STEPS),
        message=(
            f"The gradient norm was below {SMALL_NORM} for {SMALL_STEPS} steps (median "
            f"{median(norms):.2g}), {moves} "
            f"({before:.3g} to {after:.3g})."
        ),
        evidence={"median_gradient_norm": median(norms), "loss_before": before, "loss_after": after},
    )


def _find_overflows(history: RunHistory) -> Finding | None:
    num = len(history)
    window = [math.isnan(norm) for norm in history.norms[max(0, num - OVERFLOW_WINDOW) :]]
    is_stuck = len(window) >= OVERFLOW_RUN and all(window[-OVERFLOW_RUN:])
    is_frequent = (
        num >= OVERFLOW_WINDOW + OVERFLOW_START and sum(window) > OVERFLOW_FRACTION * OVERFLOW_WINDOW
    )
    if not is_stuck and not is_frequent:
        return None
    return Finding(
        code="monitor/float16-overflows",
        row=HandbookRow.LOSS_NOT_FINITE,
        severity=Severity.ERROR if is_stuck else Severity.WARNING,
        step=history.step_at(-len(window) + window.index(True)),
        message=f"{sum(window)} of the last {len(window)} steps were left out because float16 overflowed.",
        evidence={"num_skipped_steps": sum(window), "num_steps": len(window)},
        treatment=get_treatment(HandbookRow.LOSS_NOT_FINITE, 1),
    )


RULES: Final = (
    StepRule(("monitor/float16-overflows",), "MISSION T4, T5", Moment.STEP, _find_overflows),
    StepRule(("monitor/gradient-clipped-often",), "MISSION D3; guide 4.3", Moment.STEP, _find_clipping),
    StepRule(("monitor/gradient-small",), "MISSION D3; guide 4.3", Moment.STEP, _find_small),
)
