"""What makes a count of parameters from the configuration alone doubtful: said beside the figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from registry.artifacts.findings import shown
from training.engine.memory.model_shape import ModelShape, model_type_of, text_part

CHECKED_MODEL_TYPES: Final = frozenset(
    (
        *("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "olmo2", "smollm3"),
        *("granite", "cohere", "cohere2", "exaone4", "seed_oss"),
        *("mixtral", "qwen2_moe", "qwen3_moe", "olmoe"),
    )
)
"""transformers' names of the architectures whose count a test compares with the models that transformers
builds. It is exact but for small norms and gates."""
MAX_DIFFERENCE_FRACTION: Final = 0.02
"""Of stored and counted parameters; a count that is right is off by less than half a percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One reason to take the figures with care.

    Attributes:
        code: Stable kebab-case name.
        message: For people.
    """

    code: str
    message: str


def find_doubts(
    config: Mapping[str, Any], shape: ModelShape, *, num_stored_parameters: int | None = None
) -> tuple[Doubt, ...]:
    """Return the reasons to take a count with care.

    Args:
        config: Content of config.json.
        shape: What was read out of it.
        num_stored_parameters: What the weight files hold, where they are there; None when they are not.
    """
    doubts = []
    model_type = model_type_of(config)
    if model_type not in CHECKED_MODEL_TYPES:
        name = f"model type {shown(model_type)!r}" if model_type else "a configuration without model_type"
        message = (
            f"The blocks are counted as those of the Llama family; for {name} nobody has compared that with "
            "the model."
        )
        doubts.append(Doubt(code="shape-not-checked", message=message))
    if text_part(config) is not config:
        message = "Only the language model is counted; parts for images or sound come on top."
        doubts.append(Doubt(code="text-part-alone", message=message))
    if shape.num_sparse_layers:
        message = (
            "LoRA is counted with an adapter for each expert; where a model keeps its experts in one tensor, "
            "only attention and shared experts are adapted."
        )
        doubts.append(Doubt(code="experts-counted", message=message))
    counted = shape.num_parameters
    if num_stored_parameters and abs(counted / num_stored_parameters - 1) > MAX_DIFFERENCE_FRACTION:
        message = (
            f"The weight files hold {num_stored_parameters:,} parameters, but {counted:,} are counted from "
            "config.json: the figures are off by as much."
        )
        doubts.append(Doubt(code="parameters-differ", message=message))
    return tuple(doubts)
