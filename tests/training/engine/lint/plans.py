"""Plans for tests: a healthy one, and changes to it."""

from typing import Any

from registry.artifacts.findings import Severity
from training.engine.config import TrainingConfig
from training.engine.lint.findings import LintFinding
from training.engine.lint.judge import judge_plan
from training.engine.lint.plan import DataFacts, LengthFacts, TrainingPlan
from training.engine.memory.model_shape import ModelShape, read_model_shape

SEVEN_B = read_model_shape(
    {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "vocab_size": 32000,
        "intermediate_size": 11008,
        "tie_word_embeddings": False,
    }
)
"""Llama 2 7B: by hand 13.48 GB in bf16, 0.64 GB for r 16, 0.54 GB of activations of 2048 tokens with
checkpointing, 2-3 GB buffers, 2 GB overhead: 18.7 to 19.7 GB. Without checkpointing 34 / 2 times the
activations: 27.2 to 28.2 GB."""

HEALTHY_DATA = DataFacts(
    num_rows=2000,
    general_fraction=0.1,
    lengths=LengthFacts(common_tokens=900, longest_tokens=1200, num_too_long=0),
)


def make_plan(
    *,
    data: DataFacts | None = HEALTHY_DATA,
    shape: ModelShape | None = SEVEN_B,
    card_gb: float | None = 24.0,
    base_dtype: str | None = "bfloat16",
    has_held_out: bool | None = True,
    method: str = "lora",
    lora: dict[str, Any] | None = None,
    **training: Any,
) -> TrainingPlan:
    return TrainingPlan(
        config=TrainingConfig.from_json({"method": method, "lora": lora or {}, "training": training}),
        shape=shape,
        base_dtype=base_dtype,
        data=data,
        card_bytes=None if card_gb is None else card_gb * 1e9,
        has_held_out=has_held_out,
    )


def make_data(
    num_rows: int = 2000, general_fraction: float | None = 0.1, lengths: LengthFacts | None = None
) -> DataFacts:
    return DataFacts(num_rows=num_rows, general_fraction=general_fraction, lengths=lengths)


def find(plan: TrainingPlan, code: str) -> LintFinding | None:
    """The finding with a code; the rule must not be among those that were left out."""
    report = judge_plan(plan)
    assert code not in {rule.code for rule in report.unchecked}
    return next((finding for finding in report.findings if finding.code == code), None)


def severity_of(plan: TrainingPlan, code: str) -> Severity | None:
    finding = find(plan, code)
    return None if finding is None else finding.severity
