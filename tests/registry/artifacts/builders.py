"""Builds tiny base models, adapters and safetensors files by hand, without torch: checks read only shapes."""

import json
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

HIDDEN, FFN, VOCAB, NUM_LAYERS = 8, 16, 32, 2
# [d_out, d_in] of each projection of the tiny Llama; 2 heads of 4, one key/value head.
PROJECTIONS = {
    "self_attn.q_proj": (8, HIDDEN),
    "self_attn.k_proj": (4, HIDDEN),
    "self_attn.v_proj": (4, HIDDEN),
    "self_attn.o_proj": (HIDDEN, 8),
    "mlp.gate_proj": (FFN, HIDDEN),
    "mlp.up_proj": (FFN, HIDDEN),
    "mlp.down_proj": (HIDDEN, FFN),
}
_BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "U8": 8, "I8": 8, "F4": 4}
Shapes = Mapping[str, tuple[str, tuple[int, ...]]]


def write_raw(path: Path, header: Any, data: bytes = b"", *, header_bytes: int | None = None) -> Path:
    """Write a safetensors file with any header, right or wrong; a text is written as it is."""
    raw = header.encode() if isinstance(header, str) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if header_bytes is None else header_bytes) + raw + data)
    return path


def write_tensors(path: Path, tensors: Shapes, metadata: Mapping[str, str] | None = None) -> Path:
    """Write a valid safetensors file of zeros."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    position = 0
    for name, (dtype, shape) in tensors.items():
        end = position + prod(shape) * _BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, end]}
        position = end
    return write_raw(path, header, bytes(position))


def llama_shapes(
    *, num_layers: int = NUM_LAYERS, hidden: int = HIDDEN, is_tied: bool = True
) -> dict[str, Any]:
    """Return the tensors of a tiny Llama in bf16."""
    shapes: dict[str, Any] = {"model.embed_tokens.weight": ("BF16", (VOCAB, hidden))}
    for layer in range(num_layers):
        for name, (d_out, d_in) in PROJECTIONS.items():
            scaled = tuple(hidden if size == HIDDEN else size for size in (d_out, d_in))
            shapes[f"model.layers.{layer}.{name}.weight"] = ("BF16", scaled)
        shapes[f"model.layers.{layer}.input_layernorm.weight"] = ("BF16", (hidden,))
    shapes["model.norm.weight"] = ("BF16", (hidden,))
    if not is_tied:
        shapes["lm_head.weight"] = ("BF16", (VOCAB, hidden))
    return shapes


def write_json(path: Path, value: Any) -> Path:
    """Write JSON."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def base_config(**changes: Any) -> dict[str, Any]:
    """Return a config.json of the tiny Llama."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "num_hidden_layers": NUM_LAYERS,
        "vocab_size": VOCAB,
        "max_position_embeddings": 64,
        "tie_word_embeddings": True,
        **changes,
    }


def make_base(folder: Path, shapes: Shapes | None = None, **config: Any) -> Path:
    """Write a base model's folder."""
    folder.mkdir(parents=True)
    write_json(folder / "config.json", base_config(**config))
    write_json(folder / "tokenizer_config.json", {"chat_template": "{{ messages }}"})
    write_json(folder / "tokenizer.json", {})
    is_tied = config.get("tie_word_embeddings", True)
    write_tensors(folder / "model.safetensors", shapes or llama_shapes(is_tied=is_tied))
    return folder


def lora_config(**changes: Any) -> dict[str, Any]:
    """Return an adapter_config.json as peft 0.21 writes it, for rank 4 on all seven projections."""
    return {
        "peft_type": "LORA",
        "peft_version": "0.21.2",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "tiny/llama",
        "r": 4,
        "lora_alpha": 8,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "use_rslora": False,
        "use_dora": False,
        "modules_to_save": None,
        "rank_pattern": {},
        "alpha_pattern": {},
        "target_modules": [name.rpartition(".")[2] for name in PROJECTIONS],
        **changes,
    }


def lora_shapes(
    *, rank: int = 4, num_layers: int = NUM_LAYERS, dtype: str = "F32", targets: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """Return the tensors of a LoRA on the tiny Llama, named as peft saves them."""
    shapes: dict[str, Any] = {}
    for layer in range(num_layers):
        for name, (d_out, d_in) in PROJECTIONS.items():
            if targets is None or name.rpartition(".")[2] in targets:
                module = f"base_model.model.model.layers.{layer}.{name}"
                shapes[f"{module}.lora_A.weight"] = (dtype, (rank, d_in))
                shapes[f"{module}.lora_B.weight"] = (dtype, (d_out, rank))
    return shapes


def make_adapter(folder: Path, shapes: Shapes | None = None, **config: Any) -> Path:
    """Write an adapter's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "adapter_config.json", lora_config(**config))
    write_tensors(folder / "adapter_model.safetensors", lora_shapes() if shapes is None else shapes)
    return folder
