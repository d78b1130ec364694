"""Rules about the learning rate and what scales it.

The guide (MISSION D1, D2; seed 002, section 4.2): a LoRA takes 1e-4 to 3e-4, ten times what full fine-tuning
takes; with full fine-tuning's 1e-5 to 2e-5 it hardly moves.
"""

from typing import Final

from training.engine.lint.findings import LintRule, Observation, explain, refuse, warn
from training.engine.lint.plan import TrainingPlan

HIGHEST_FULL_RATE: Final = 2e-5
LOWEST_LORA_RATE: Final = 1e-4
HIGHEST_LORA_RATE: Final = 3e-4
FAR_TOO_HIGH_RATE: Final = 3e-3
"""An order of magnitude above the usual, the distance at which the guide calls a rate another method's."""
USUAL_SCALING: Final = 2.0
"""alpha / r with alpha = 2r (MISSION B3)."""
NOTABLE_SCALING_FACTOR: Final = 2.0
"""The guide's own example: alpha fixed at 16 while r goes from 8 to 16 halves the scale."""
LONGEST_WARMUP_FRACTION: Final = 0.1


def _full_rate_on_lora(plan: TrainingPlan) -> Observation | None:
    rate = plan.config.training.learning_rate
    if not plan.is_adapter or rate > HIGHEST_FULL_RATE:
        return None
    return warn(
        f"The learning rate {rate:g} is one of full fine-tuning (1e-5 to 2e-5); a LoRA hardly moves with it, "
        "and its loss stays flat.",
        "Set learning_rate to 2e-4; 1e-4 to 3e-4 are usual for a LoRA.",
    )


def _low(plan: TrainingPlan) -> Observation | None:
    rate = plan.config.training.learning_rate
    if not plan.is_adapter or not HIGHEST_FULL_RATE < rate < LOWEST_LORA_RATE:
        return None
    return explain(
        f"The learning rate {rate:g} is below the 1e-4 to 3e-4 that are usual for a LoRA. That is right "
        "against forgetting, and slow otherwise.",
        "Set learning_rate to 2e-4 unless a regression set has dropped.",
    )


def _high(plan: TrainingPlan) -> Observation | None:
    rate = plan.config.training.learning_rate
    if not plan.is_adapter or not HIGHEST_LORA_RATE < rate <= FAR_TOO_HIGH_RATE:
        return None
    return warn(
        f"The learning rate {rate:g} is above the 1e-4 to 3e-4 that are usual for a LoRA: the loss may swing "
        "or become NaN, and more is forgotten. Very small models stand more.",
        "Set learning_rate to 2e-4, or watch the gradient norm and the regression set.",
    )


def _far_too_high(plan: TrainingPlan) -> Observation | None:
    rate = plan.config.training.learning_rate
    if not plan.is_adapter or rate <= FAR_TOO_HIGH_RATE:
        return None
    return refuse(
        f"The learning rate {rate:g} is more than ten times the highest that is usual for a LoRA (3e-4): the "
        "training will most likely diverge.",
        "Set learning_rate to 2e-4.",
    )


def _lora_rate_on_full(plan: TrainingPlan) -> Observation | None:
    rate = plan.config.training.learning_rate
    if plan.is_adapter or rate < LOWEST_LORA_RATE:
        return None
    return warn(
        f"The learning rate {rate:g} is one of a LoRA; full fine-tuning takes a tenth (1e-5 to 2e-5) and "
        "loses what the base knew with more.",
        "Set learning_rate to 1e-5 to 2e-5.",
    )


def _scale(plan: TrainingPlan) -> Observation | None:
    lora, rate = plan.config.lora, plan.config.training.learning_rate
    factor = lora.scaling / USUAL_SCALING
    if not plan.is_adapter or abs(factor - 1) < 1e-9:
        return None
    root = lora.r**0.5
    formula = "alpha / sqrt(r)" if lora.use_rslora else "alpha / r"
    usual = max(1, round(USUAL_SCALING * (root if lora.use_rslora else lora.r)))
    message = (
        f"The scale is {formula} = {lora.scaling:.3g} (alpha {lora.lora_alpha}, r {lora.r}) and not 2: that "
        f"is like a learning rate of {factor * rate:.2g} instead of {rate:g}."
    )
    remedy = f"Set lora_alpha to {usual}, or choose the learning rate for this scale."
    is_notable = not 1 / NOTABLE_SCALING_FACTOR < factor < NOTABLE_SCALING_FACTOR
    return warn(message, remedy) if is_notable else explain(message, remedy)


def _no_warmup(plan: TrainingPlan) -> Observation | None:
    if plan.config.training.warmup_fraction > 0:
        return None
    return warn(
        "There is no warm-up: the first steps have the full rate while Adam's moments rest on a few batches.",
        "Set warmup_fraction to 0.03.",
    )


def _long_warmup(plan: TrainingPlan) -> Observation | None:
    fraction = plan.config.training.warmup_fraction
    if fraction <= LONGEST_WARMUP_FRACTION:
        return None
    return explain(
        f"{fraction:.0%} of all steps are warm-up, so much of the run has less than the configured rate.",
        "Set warmup_fraction to 0.03; more than 0.1 is seldom of use.",
    )


def _no_clipping(plan: TrainingPlan) -> Observation | None:
    if plan.config.training.max_grad_norm > 0:
        return None
    return warn(
        "Gradients are not clipped, so one faulty example can spoil the adapter.", "Set max_grad_norm to 1.0."
    )


_RATE: Final = "training.learning_rate"
RULES: Final = (
    LintRule("learning-rate-far-too-high", "D1", _RATE, _far_too_high),
    LintRule("learning-rate-of-full-fine-tuning", "D2", _RATE, _full_rate_on_lora),
    LintRule("learning-rate-of-a-lora", "D2", _RATE, _lora_rate_on_full),
    LintRule("learning-rate-above-usual", "D1", _RATE, _high),
    LintRule("learning-rate-below-usual", "D1, F8", _RATE, _low),
    LintRule("scale-changed", "B3", "lora.lora_alpha", _scale),
    LintRule("no-warmup", "D1", "training.warmup_fraction", _no_warmup),
    LintRule("long-warmup", "D1", "training.warmup_fraction", _long_warmup),
    LintRule("no-gradient-clipping", "D1, D3", "training.max_grad_norm", _no_clipping),
)
