"""The files beside the weights: configuration, tokenizer, template, licence; never an adapter's files."""

import json
import shutil
from pathlib import Path

from registry.artifacts.base_model import WEIGHTS_INDEX, BaseModelSummary

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


def write_index(base_model: Path, output: Path, base: BaseModelSummary) -> None:
    """Write the index of a sharded model: the base's map, with ``total_size`` as the bytes of all tensors.

    Some tools write a count of tensors or parameters there, so it is not taken over. Does nothing for a model
    in one file.
    """
    if not (base_model / WEIGHTS_INDEX).is_file():
        return
    index = json.loads((base_model / WEIGHTS_INDEX).read_text(encoding="utf-8"))
    total_bytes = sum(tensor.info.size_bytes for tensor in base.tensors.values())
    index["metadata"] = {**(index.get("metadata") or {}), "total_size": total_bytes}
    (output / WEIGHTS_INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _is_companion(name: str) -> bool:
    lower = name.lower()
    return (
        name not in _LEFT_OUT_NAMES
        and not lower.startswith(_LEFT_OUT_PREFIXES)
        and Path(lower).suffix not in _LEFT_OUT_SUFFIXES
    )
