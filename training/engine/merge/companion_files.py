"""The files beside the weights: configuration, tokenizer, template, licence; never an adapter's files."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from registry.artifacts.base_model import WEIGHTS_INDEX
from registry.artifacts.safetensors_header import SafetensorsHeader

PROVENANCE_FILE = "assay_merge.json"

# Weights in any format, and what makes a library attach an adapter again or run code.
_LEFT_OUT_SUFFIXES = frozenset(
    (
        ".safetensors",
        ".bin",
        ".pt",
        ".pth",
        ".ckpt",
        ".pkl",
        ".gguf",
        ".h5",
        ".msgpack",
        ".onnx",
        ".py",
        ".zip",
    )
)
_LEFT_OUT_NAMES = frozenset({WEIGHTS_INDEX, PROVENANCE_FILE, "pytorch_model.bin.index.json"})
_LEFT_OUT_PREFIXES = ("adapter_", ".", "training_args", "optimizer", "trainer_state")
_FOLDERS = ("chat_templates", "additional_chat_templates")


def copy_companion_files(base_model: Path, output: Path) -> list[str]:
    """Copy what belongs to the model besides its weights; return the names, sorted.

    Links are followed, and copies are writable whatever the originals are.
    """
    names = sorted(path.name for path in base_model.iterdir() if path.is_file() and _is_companion(path.name))
    for name in names:
        shutil.copyfile(base_model / name, output / name)
    for folder in _FOLDERS:
        if (base_model / folder).is_dir():
            shutil.copytree(base_model / folder, output / folder, copy_function=shutil.copyfile)
            names.append(f"{folder}/")
    return sorted(names)


def write_index(base_model: Path, output: Path, shards: Mapping[str, SafetensorsHeader]) -> None:
    """Write the index of a sharded model: every tensor's file, and ``total_size`` as the bytes of all
    tensors.

    Some tools write a count of tensors or parameters there, so it is not taken over. Does nothing for a model
    in one file.

    Args:
        base_model: Folder with the base's index, whose other metadata is kept.
        output: Folder to write into.
        shards: Headers of the written files.
    """
    if not (base_model / WEIGHTS_INDEX).is_file():
        return
    index = json.loads((base_model / WEIGHTS_INDEX).read_text(encoding="utf-8"))
    tensors = {
        name: (shard, info) for shard, header in shards.items() for name, info in header.tensors.items()
    }
    total_bytes = sum(info.size_bytes for _, info in tensors.values())
    index["metadata"] = {**(index.get("metadata") or {}), "total_size": total_bytes}
    known = {name: tensors[name][0] for name in index["weight_map"]}
    index["weight_map"] = {**known, **{name: shard for name, (shard, _) in tensors.items()}}
    (output / WEIGHTS_INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def write_config(output: Path, *, vocab_size: int | None, is_untied: bool) -> None:
    """Change the copied config.json where the merged tensors differ from what it says.

    Multimodal models hold the language model's values under ``text_config`` as well.

    Args:
        output: Folder with the copied config.json.
        vocab_size: New number of rows of the embeddings; None leaves it.
        is_untied: Whether the output layer has a tensor of its own now.
    """
    if vocab_size is None and not is_untied:
        return
    path = output / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    text_config = config.get("text_config")
    parts = [config, text_config] if isinstance(text_config, dict) else [config]
    for part in parts:
        if is_untied:
            part["tie_word_embeddings"] = False
        if vocab_size is not None and (len(parts) == 1 or "vocab_size" in part):
            part["vocab_size"] = vocab_size
    path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _is_companion(name: str) -> bool:
    lower = name.lower()
    return (
        name not in _LEFT_OUT_NAMES
        and not lower.startswith(_LEFT_OUT_PREFIXES)
        and Path(lower).suffix not in _LEFT_OUT_SUFFIXES
    )
