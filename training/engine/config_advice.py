"""What to say about settings that other tools have and this one has not, or has under another name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from training.engine.errors import Fault

NAMES_ELSEWHERE: Final[Mapping[str, str]] = {
    "alpha": "lora_alpha",
    "dropout": "lora_dropout",
    "lora_r": "r",
    "lora_rank": "r",
    "rank": "r",
    "layers_to_transform": "layers",
    "lora_target": "target_modules",
    "cutoff_len": "max_length_tokens",
    "max_length": "max_length_tokens",
    "max_seq_len": "max_length_tokens",
    "max_seq_length": "max_length_tokens",
    "epochs": "num_epochs",
    "num_train_epochs": "num_epochs",
    "batch_size": "per_device_batch_size",
    "micro_batch_size": "per_device_batch_size",
    "per_device_train_batch_size": "per_device_batch_size",
    "gradient_accumulation": "gradient_accumulation_steps",
    "lr": "learning_rate",
    "lr_scheduler_type": "lr_scheduler",
    "warmup_ratio": "warmup_fraction",
    "gradient_clipping": "max_grad_norm",
    "logging_steps": "log_every_steps",
    "eval_steps": "eval_every_steps",
    "save_steps": "save_every_steps",
}
"""Names in transformers, TRL, LLaMA-Factory and axolotl, to the name here."""

_ABSENT: Final[Mapping[str, str]] = {
    "bf16": "Set dtype to auto or bfloat16.",
    "fp16": "Set dtype to auto, or to float16, which overflows where bfloat16 does not (MISSION D1).",
    "load_in_4bit": "Set method to qlora, at the top of the configuration.",
    "modules_to_save": "Whole modules beside a LoRA are neither merged nor served here.",
}
_REFUSED_VALUES: Final[Mapping[str, str]] = {
    "lora.bias": "A LoRA with trained biases is refused by the merge here and by vLLM.",
}


def with_advice(fault: Fault) -> Fault:
    """Return the fault with a better remedy where one is known."""
    name = fault.where.rpartition(".")[2]
    if fault.code == "unknown-key" and name in NAMES_ELSEWHERE:
        remedy = f"It is called {NAMES_ELSEWHERE[name]} here."
    elif fault.code == "unknown-key" and name in _ABSENT:
        remedy = _ABSENT[name]
    elif fault.code == "invalid-value" and fault.where in _REFUSED_VALUES:
        remedy = _REFUSED_VALUES[fault.where]
    else:
        return fault
    said = fault.message.removesuffix(fault.remedy).rstrip(". ") if fault.remedy else fault.message
    return replace(fault, message=f"{said}. {remedy}", remedy=remedy)
