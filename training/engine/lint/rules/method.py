"""Rules about the method of training."""

from typing import Final

from training.engine.lint.findings import LintRule, Observation, explain, warn
from training.engine.lint.memory_needs import estimate_plan
from training.engine.lint.plan import TrainingPlan


def _full(plan: TrainingPlan) -> Observation | None:
    if plan.is_adapter:
        return None
    return explain(
        "Full fine-tuning gives a whole model, which is registered as a base model and cannot be submitted "
        "as an adapter.",
        "Set method to lora unless a whole model is wanted.",
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
    LintRule("full-gives-a-base-model", "B1", "method", _full),
    LintRule("qlora-for-exploring", "B4", "method", _qlora),
)
