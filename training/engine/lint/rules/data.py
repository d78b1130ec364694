"""Rules about how much data there is, and of what kind."""

from typing import Final

from training.engine.lint.findings import LintRule, Observation, refuse, warn
from training.engine.lint.plan import Fact, TrainingPlan, need

LEAST_ROWS: Final = 200
"""MISSION D6: 200 rows are the smoke experiment that comes before a training."""
LEAST_GENERAL_FRACTION: Final = 0.05
MOST_GENERAL_FRACTION: Final = 0.2
"""MISSION C4: 5-20 % general instruction data."""


def _few_rows(plan: TrainingPlan) -> Observation | None:
    num_rows = need(plan.num_rows)
    if num_rows >= LEAST_ROWS:
        return None
    if num_rows == 0:
        return refuse("There is no row to train on.", "Add data, or raise max_length_tokens.")
    return warn(
        f"{num_rows} rows: below {LEAST_ROWS} a run shows that format, template and mask are right, no more.",
        "Collect more data before a run whose result is to be judged.",
    )


def _general(plan: TrainingPlan) -> Observation | None:
    fraction = need(need(plan.data).general_fraction)
    if LEAST_GENERAL_FRACTION <= fraction <= MOST_GENERAL_FRACTION:
        return None
    if fraction == 0:
        message = "There is no general instruction data, so the model forgets what it could."
    elif fraction < LEAST_GENERAL_FRACTION:
        message = f"{fraction:.1%} of the rows are general instruction data: too little against forgetting."
    else:
        message = (
            f"{fraction:.0%} of the rows are general instruction data: the task gets less than it could."
        )
    return warn(message, "Mix in 5 % to 20 %, the more the further the task is from what the base does.")


def _no_held_out(plan: TrainingPlan) -> Observation | None:
    if need(plan.has_held_out):
        return None
    return warn(
        "There are no held-out rows, so overfitting (their loss rises while that of training falls) stays "
        "unseen.",
        "Cut 5 % to 10 % of the data off as a holdout set.",
    )


RULES: Final = (
    LintRule("few-rows", "D6", "training data", _few_rows, frozenset({Fact.ROWS})),
    LintRule("general-fraction", "C4, F8", "training data", _general, frozenset({Fact.GENERAL})),
    LintRule("no-held-out-set", "D3, F1", "holdout", _no_held_out, frozenset({Fact.HELD_OUT})),
)
