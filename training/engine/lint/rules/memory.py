"""Rules about the memory of the card (MISSION B1, D5) and about number formats."""

from typing import Final

from training.engine.lint.findings import LintRule, Observation, explain, refuse, warn
from training.engine.lint.memory_needs import estimate_plan, request_of
from training.engine.lint.plan import Fact, TrainingPlan, need
from training.engine.memory.estimate import suggest_changes

_CARD: Final = frozenset({Fact.SHAPE, Fact.CARD})


def _does_not_fit(plan: TrainingPlan) -> Observation | None:
    shape, card = need(plan.shape), need(plan.card_bytes)
    estimate = need(estimate_plan(plan))
    if estimate.high_bytes <= card:
        return None
    needed = f"{_gb(estimate.low_bytes)} to {_gb(estimate.high_bytes)}"
    changes = suggest_changes(shape, request_of(plan, shape), card_bytes=card)
    message = f"The training needs {needed}; the card has {_gb(card)}."
    if not changes or not changes[-1].fits:
        return refuse(
            message, "No change makes it fit: take a larger card, several cards, or a smaller base."
        )
    listed = "; then ".join(f"{change.what} ({_gb(change.high_bytes)})" for change in changes)
    remedy = f"In this order: {listed}."
    return warn(message, remedy) if estimate.low_bytes <= card else refuse(message, remedy)


def _checkpointing_missing(plan: TrainingPlan) -> Observation | None:
    if plan.config.training.gradient_checkpointing:
        return None
    card, without = need(plan.card_bytes), need(estimate_plan(plan))
    saving = need(estimate_plan(plan, has_checkpointing=True))
    if without.high_bytes <= card:
        return None
    message = (
        f"Gradient checkpointing is off and {_gb(without.high_bytes)} do not fit the card's {_gb(card)}; "
        f"with it they are {_gb(saving.high_bytes)}."
    )
    return refuse(message, "Set gradient_checkpointing to true.")


def _checkpointing_for_nothing(plan: TrainingPlan) -> Observation | None:
    if not plan.config.training.gradient_checkpointing:
        return None
    card, without = need(plan.card_bytes), need(estimate_plan(plan, has_checkpointing=False))
    if without.high_bytes > card:
        return None
    return explain(
        f"Gradient checkpointing takes about 30 % of the time and is not needed: without it the training "
        f"takes {_gb(without.high_bytes)} of the card's {_gb(card)}.",
        "Set gradient_checkpointing to false.",
    )


def _float32(plan: TrainingPlan) -> Observation | None:
    if plan.config.training.dtype != "float32":
        return None
    return warn(
        "dtype is float32 on a card: weights and activations take twice the memory of bfloat16 (the estimate "
        "here is for bfloat16), and matrix products are much slower.",
        "Set dtype to auto or bfloat16, whose range is that of float32.",
    )


def _float16_base(plan: TrainingPlan) -> Observation | None:
    if need(plan.base_dtype) != "float16":
        return None
    return explain(
        "The base's weights are float16, with 11 significant bits; training rounds them to bfloat16's 8, or "
        "computes in float32. The merged model is float16 again: near ties may fall differently after the "
        "merge. Training in float16 itself is not offered, since its range overflows to NaN.",
        "Prefer a base that was published in bfloat16, or set dtype to float32 where memory allows.",
    )


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"


RULES: Final = (
    LintRule("memory-does-not-fit", "B1, D5", "training", _does_not_fit, _CARD),
    LintRule(
        "checkpointing-missing", "D2, D5", "training.gradient_checkpointing", _checkpointing_missing, _CARD
    ),
    LintRule(
        "checkpointing-not-needed", "D2", "training.gradient_checkpointing", _checkpointing_for_nothing, _CARD
    ),
    LintRule("float32-on-a-card", "D1", "training.dtype", _float32, frozenset({Fact.CARD})),
    LintRule("float16-base", "D1, E2", "base model", _float16_base, frozenset({Fact.BASE_DTYPE})),
)
