"""Adapters of every variant, made by peft itself on small random models, and peft's own result in float64."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import torch
import transformers
from safetensors.torch import load_file
from transformers import PreTrainedModel

VOCAB, HIDDEN = 48, 32
_COMMON = {"vocab_size": VOCAB, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_LLAMA_LIKE = {
    **_COMMON,
    "hidden_size": HIDDEN,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
}
_EXPERTS = {**_LLAMA_LIKE, "num_hidden_layers": 1}


def _config(kind: str, **changes: Any) -> Any:
    t = transformers
    configs: dict[str, Callable[[], Any]] = {
        "gpt2": lambda: t.GPT2Config(
            n_embd=HIDDEN, n_layer=2, n_head=4, n_positions=64, **{**_COMMON, **changes}
        ),
        "llama": lambda: t.LlamaConfig(attention_bias=True, mlp_bias=True, **{**_LLAMA_LIKE, **changes}),
        "qwen2": lambda: t.Qwen2Config(**{**_LLAMA_LIKE, **changes}),
        "qwen3": lambda: t.Qwen3Config(**{**_LLAMA_LIKE, **changes}),
        "mistral": lambda: t.MistralConfig(sliding_window=None, **{**_LLAMA_LIKE, **changes}),
        "gemma": lambda: t.GemmaConfig(**{**_LLAMA_LIKE, **changes}),
        "gemma2": lambda: t.Gemma2Config(**{**_LLAMA_LIKE, **changes}),
        "mixtral": lambda: t.MixtralConfig(num_local_experts=4, **{**_EXPERTS, **changes}),
        "qwen3_moe": lambda: t.Qwen3MoeConfig(
            num_experts=4, num_experts_per_tok=2, **{"moe_intermediate_size": 24, **_EXPERTS, **changes}
        ),
        "gpt_oss": lambda: t.GptOssConfig(num_local_experts=4, **{**_EXPERTS, **changes}),
    }
    return configs[kind]()


def build_base(folder: Path, kind: str, *, dtype: torch.dtype = torch.bfloat16, **changes: Any) -> Path:
    """Write a model with random weights and biases, and files that stand for a tokenizer."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = transformers.AutoModelForCausalLM.from_config(_config(kind, **changes), dtype=torch.float32)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("bias"):
                    parameter.normal_(0.0, 0.1)
                elif parameter.dim() > 1:
                    parameter.normal_(0.0, 0.2)
    save = {"max_shard_size": changes.pop("max_shard_size")} if "max_shard_size" in changes else {}
    model.to(dtype).save_pretrained(folder, **save)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    return folder


def load(folder: Path, dtype: torch.dtype = torch.float64, *, is_untied: bool = False) -> PreTrainedModel:
    """Load a model; untied, its output layer becomes a copy of the embedding."""
    options: dict[str, Any] = {"tie_word_embeddings": False} if is_untied else {}
    model: PreTrainedModel = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager", **options
    )
    if is_untied:
        head: Any = model.get_output_embeddings()
        embedding: Any = model.get_input_embeddings()
        head.weight.data = embedding.weight.data.clone()
    return model.eval()


def build_adapter(
    base: Path,
    folder: Path,
    *,
    resize: int | None = None,
    dtype: torch.dtype = torch.float32,
    save_embedding_layers: bool | str = "auto",
    **settings: Any,
) -> Path:
    """Train nothing, but move every trainable parameter at random, and save with peft."""
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = load(base, torch.float32)
        if resize is not None:
            model.resize_token_embeddings(resize, mean_resizing=False)
        config = peft.LoraConfig(**{"r": 4, "lora_alpha": 6, "task_type": "CAUSAL_LM", **settings})
        adapted = peft.get_peft_model(model, config)
        with torch.no_grad():
            for name, parameter in adapted.named_parameters():
                if parameter.requires_grad:
                    noise = torch.randn_like(parameter) * 0.1
                    parameter.copy_(parameter * (1 + noise) if "magnitude" in name else parameter + noise)
                    parameter.data = parameter.data.to(dtype)
    adapted.save_pretrained(folder, save_embedding_layers=save_embedding_layers)
    return folder


def put_adapter(model: PreTrainedModel, adapter: Path, resize: int | None = None) -> Any:
    """Load an adapter with peft, in the model's own dtype."""
    if resize is not None:
        model.resize_token_embeddings(resize, mean_resizing=False)
    return peft.PeftModel.from_pretrained(model, adapter, autocast_adapter_dtype=False).eval()


def reference(
    base: Path, adapter: Path, folder: Path, *, resize: int | None = None, is_untied: bool = False
) -> dict[str, torch.Tensor]:
    """Return the tensors that peft's merge in float64 gives, under the names of the files."""
    adapted = put_adapter(load(base, is_untied=is_untied), adapter, resize)
    merged = adapted.merge_and_unload(safe_merge=True)
    merged.save_pretrained(folder)
    return load_tensors(folder)


def load_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """Return all tensors of a model folder."""
    paths = sorted(folder.glob("model*.safetensors"))
    return {name: tensor for path in paths for name, tensor in load_file(path).items()}


def logits(model: Any) -> torch.Tensor:
    """Return the logits of fixed tokens: [2, T, V]."""
    tokens = torch.arange(24).reshape(2, 12) % VOCAB
    with torch.no_grad():
        result: torch.Tensor = model(tokens).logits
    return result


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON file's object."""
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def ulp_distance(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the distance in representable bf16 numbers."""

    def order(tensor: torch.Tensor) -> torch.Tensor:
        bits = tensor.contiguous().view(torch.int16).int()
        return torch.where(bits < 0, -(bits & 0x7FFF), bits)

    return (order(left) - order(right)).abs()
