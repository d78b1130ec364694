"""Rules about the method of training."""

from typing import Final

from training.engine.lint.findings import LintRule, Observation, explain, refuse, warn
from training.engine.lint.memory_needs import estimate_plan
from training.engine.lint.plan import TrainingPlan


def _full(plan: TrainingPlan) -> Observation | None:
    if plan.is_adapter:
        return None
    return refuse(
        "Full fine-tuning is estimated and judged, but the trainer here writes adapters only.",
        "Set method to lora, or train elsewhere and register the result as a base model.",
    )


def _qlora(plan: TrainingPlan) -> Observation | None:
    if plan.config.method != "qlora":
        return None
    said = "QLoRA is for exploring: 30-50 % slower than LoRA and slightly worse."
    plain = estimate_plan(plan, method="lora")
    if plain is not None and plan.card_bytes is not None and plain.high_bytes <= plan.card_bytes:
        return warn(
            f"{said} A plain LoRA needs {plain.high_bytes / 1e9:.1f} GB and fits the card's "
            f"{plan.card_bytes / 1e9:.1f} GB.",
            "Set method to lora.",
        )
    return explain(said, "Repeat the final run with method lora on a card that holds it.")


RULES: Final = (
    LintRule("full-not-supported", "B1", "method", _full),
    LintRule("qlora-for-exploring", "B4", "method", _qlora),
)
