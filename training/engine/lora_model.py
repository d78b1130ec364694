"""Putting a trainable LoRA adapter on a base model, and checking that it can learn."""

import importlib.util
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, PreTrainedModel

from training.engine.chat import ChatTokenizer
from training.engine.config import LoraSettings
from training.engine.errors import BaseModelUnavailable, ConfigInvalid, TrainingFailed
from training.engine.layer_choice import select_layers


def require_trainable(method: str, device: torch.device) -> None:
    """Check that a method of training can be carried out here.

    Args:
        method: "lora", "qlora" or "full".
        device: Of the training.

    Raises:
        ConfigInvalid: ``qlora-needs-cuda`` or ``qlora-needs-bitsandbytes``.
    """
    if method != "qlora":
        return
    if device.type != "cuda":
        raise ConfigInvalid(
            "qlora-needs-cuda",
            "QLoRA keeps the base in 4 bit, which needs a CUDA device; there is none. Set method to lora.",
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise ConfigInvalid(
            "qlora-needs-bitsandbytes",
            "QLoRA needs the package bitsandbytes on the machine that trains: pip install bitsandbytes, or "
            "set method to lora.",
        )


def load_tokenizer(folder: Path) -> ChatTokenizer:
    """Load the base model's tokenizer; nothing is fetched and no code of the model is run.

    Raises:
        BaseModelUnavailable: ``tokenizer-unreadable``.
    """
    try:
        tokenizer: ChatTokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise BaseModelUnavailable(
            "tokenizer-unreadable", f"No tokenizer can be loaded from the base: {error}"
        ) from error
    return tokenizer


def load_base_model(
    folder: Path,
    *,
    dtype: torch.dtype,
    attention: str,
    device: torch.device,
    has_4bit_weights: bool = False,
) -> PreTrainedModel:
    """Load a causal language model from a local folder, frozen weights in ``dtype``.

    Args:
        folder: Hugging Face folder.
        dtype: Of the weights and of matrix products.
        attention: transformers' name of the attention implementation.
        device: Where the model goes.
        has_4bit_weights: Whether the linear layers, the output layer left out, are held in 4-bit NormalFloat
            with their scales quantised once more, and products are computed in ``dtype`` (QLoRA,
            https://arxiv.org/abs/2305.14314, section 3). Norms and embeddings stay in ``dtype`` as without
            it, so that the quantisation is all that differs from a plain LoRA.

    Raises:
        BaseModelUnavailable: ``base-model-unreadable``.
    """
    options: dict[str, Any] = {}
    if has_4bit_weights:
        # Quantised weights are placed while they are loaded; they cannot be moved afterwards.
        options = {"quantization_config": make_4bit_config(dtype), "device_map": {"": device}}
    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation=attention,
            local_files_only=True,
            trust_remote_code=False,
            **options,
        )
    except (OSError, ValueError, KeyError) as error:
        raise BaseModelUnavailable(
            "base-model-unreadable", f"The base model cannot be loaded: {error}"
        ) from error
    model.config.use_cache = False
    if not has_4bit_weights:
        moved: Any = model
        moved.to(device)
    return model


def make_4bit_config(dtype: torch.dtype) -> BitsAndBytesConfig:
    """Return the quantisation of QLoRA: NF4, double quantisation, products in ``dtype``."""
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def add_lora(model: PreTrainedModel, settings: LoraSettings, *, base_model_name: str) -> PeftModel:
    """Put a LoRA adapter on the model: base frozen, A random and B zero, both float32.

    Draws from torch's default generators.

    Args:
        model: The base; it is changed in place.
        settings: The adapter's shape.
        base_model_name: Written into adapter_config.json as ``base_model_name_or_path``.

    Raises:
        ConfigInvalid: ``target-modules-not-found`` when no module has one of the names;
            ``layers-out-of-range`` when the configured blocks reach beyond the model.
    """
    layers = select_layers(settings.layers, model.config.get_text_config().num_hidden_layers)
    config = LoraConfig(
        r=settings.r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=settings.lora_dropout,
        target_modules=list(settings.target_modules),
        bias="none",
        use_rslora=settings.use_rslora,
        use_dora=settings.use_dora,
        layers_to_transform=None if layers is None else list(layers),
        task_type="CAUSAL_LM",
    )
    leaves = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    missing = sorted(name for name in settings.target_modules if name.rpartition(".")[2] not in leaves)
    if missing:
        raise ConfigInvalid(
            "target-modules-not-found",
            f"lora.target_modules names modules that the base model does not have: {', '.join(missing)}.",
        )
    peft_model = get_peft_model(model, config, autocast_adapter_dtype=True)
    peft_model.peft_config["default"].base_model_name_or_path = base_model_name
    for parameter in peft_model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return peft_model


def list_trainables(model: PeftModel) -> dict[str, torch.nn.Parameter]:
    """Return the trainable parameters by name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def check_first_gradients(trainables: dict[str, torch.nn.Parameter]) -> None:
    """Check that every lora_B has a gradient after the first backward pass; lora_A has none while B is zero.

    Raises:
        TrainingFailed: ``lora-without-gradient``, for example under gradient checkpointing whose inputs need
            no gradient.
    """
    silent = [
        name
        for name, parameter in trainables.items()
        if "lora_B" in name and (parameter.grad is None or not bool(parameter.grad.abs().max() > 0))
    ]
    if silent:
        shown = ", ".join(silent[:3])
        raise TrainingFailed(
            "lora-without-gradient",
            f"{len(silent)} LoRA matrices get no gradient in the first step (for example {shown}): they "
            "would not be trained. Remove their modules from lora.target_modules, or switch "
            "gradient_checkpointing off.",
        )
