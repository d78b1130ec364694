"""Rules about steps, batches and the intervals of measuring."""

from typing import Final

from training.engine.lint.findings import LintRule, Observation, explain, warn
from training.engine.lint.plan import Fact, TrainingPlan, need

MOST_PASSES: Final = 3.0
"""Seed 002, section 4.2: one to three passes; more overfits nearly always."""
JUDGED_STEPS: Final = 50
"""MISSION D3: the first 50 steps show whether the loss goes down."""
LEAST_POINTS: Final = 5
"""As many as D1's interval of 10 gives in the first 50 steps."""
SMALL_BATCH: Final = 8
"""Half of D1's 16."""


def _many_passes(plan: TrainingPlan) -> Observation | None:
    passes = need(plan.num_passes)
    if passes <= MOST_PASSES:
        return None
    return warn(
        f"{passes:.3g} passes over the data{_told_by_steps(plan)}: one to three are usual, more overfits.",
        _set_length(plan, "num_epochs to 2"),
    )


def _few_passes(plan: TrainingPlan) -> Observation | None:
    passes = need(plan.num_passes)
    if passes >= 1:
        return None
    return warn(
        f"{passes:.2g} of a pass over the data{_told_by_steps(plan)}: the rest is never trained on.",
        _set_length(plan, "num_epochs to 1 or more"),
    )


def _few_steps(plan: TrainingPlan) -> Observation | None:
    num_steps = need(plan.num_steps)
    if num_steps >= JUDGED_STEPS:
        return None
    return warn(
        f"{num_steps} optimiser steps in all: whether the loss goes down shows in the first {JUDGED_STEPS}, "
        "and the schedule has no time to work.",
        f"Use more data, or a smaller effective batch than {plan.effective_batch}.",
    )


def _batch_exceeds_the_data(plan: TrainingPlan) -> Observation | None:
    num_rows = need(plan.num_rows)
    if plan.effective_batch <= num_rows:
        return None
    return warn(
        f"The effective batch of {plan.effective_batch} is larger than the data ({num_rows} rows): every "
        "step sees all of it.",
        "Set gradient_accumulation_steps lower.",
    )


def _small_batch(plan: TrainingPlan) -> Observation | None:
    if plan.effective_batch >= SMALL_BATCH:
        return None
    return explain(
        f"The effective batch is {plan.effective_batch}: gradients of so few rows swing.",
        "Raise gradient_accumulation_steps to an effective batch of 16; it takes no memory.",
    )


def _held_out_at_the_end(plan: TrainingPlan) -> Observation | None:
    interval, num_steps = plan.config.training.eval_every_steps, need(plan.num_steps)
    if plan.has_held_out is False or interval < num_steps:
        return None
    return warn(
        f"The held-out loss is measured every {interval} steps and the run has {num_steps}: it comes once, "
        "at the end, so nobody sees it rise.",
        f"Set eval_every_steps to {max(1, num_steps // LEAST_POINTS)} or less.",
    )


def _coarse_log(plan: TrainingPlan) -> Observation | None:
    interval = plan.config.training.log_every_steps
    window = min(JUDGED_STEPS, plan.num_steps or JUDGED_STEPS)
    # The first step is always logged.
    num_points = window // interval + (interval > 1)
    if num_points >= min(LEAST_POINTS, window):
        return None
    return explain(
        f"The loss is logged every {interval} steps: the first {window} steps, which tell most, give "
        f"{num_points} point{'' if num_points == 1 else 's'}.",
        f"Set log_every_steps to {max(1, window // LEAST_POINTS)}.",
    )


def _told_by_steps(plan: TrainingPlan) -> str:
    training = plan.config.training
    if training.max_steps is None:
        return ""
    return f" ({training.max_steps} steps of {plan.effective_batch} rows, {plan.num_rows} rows in all)"


def _set_length(plan: TrainingPlan, epochs: str) -> str:
    is_by_steps = plan.config.training.max_steps is not None
    return f"Set {'max_steps to null and ' if is_by_steps else ''}{epochs}."


_STEPS: Final = frozenset({Fact.STEPS})
_PASSES: Final = frozenset({Fact.PASSES})
RULES: Final = (
    LintRule("too-many-epochs", "D2", "training.num_epochs", _many_passes, _PASSES),
    LintRule("part-of-the-data-unused", "D1", "training.num_epochs", _few_passes, _PASSES),
    LintRule("few-steps", "D3", "training", _few_steps, _STEPS),
    LintRule(
        "batch-exceeds-the-data",
        "D1",
        "training.gradient_accumulation_steps",
        _batch_exceeds_the_data,
        frozenset({Fact.ROWS}),
    ),
    LintRule("small-effective-batch", "D1, T5", "training.gradient_accumulation_steps", _small_batch),
    LintRule("held-out-loss-only-once", "D3", "training.eval_every_steps", _held_out_at_the_end, _STEPS),
    LintRule("coarse-log", "D3", "training.log_every_steps", _coarse_log),
)
