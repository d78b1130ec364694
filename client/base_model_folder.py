"""Which files of a downloaded base model belong to it, and which a download leaves lying around.

The Hugging Face layout: weights as safetensors, configuration, tokenizer, chat template, licence. Pickled
weights run code when they are loaded, and Python files are code; neither is ever uploaded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from client.errors import UsageError
from registry.artifacts.findings import shown

_WANTED_PATTERNS = (
    "*.safetensors",
    "*.safetensors.index.json",
    "*config.json",
    "tokenizer*.json",
    "tokenizer.model",
    "*.tiktoken",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "chat_template.json",
    "*.jinja",
    "LICENSE*",
    "NOTICE*",
    "README.md",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModelSelection:
    """The files to upload, by name, and the names of what stays behind."""

    sources: dict[str, Path]
    left_out: tuple[str, ...]


def select_base_model_files(folder: Path) -> BaseModelSelection:
    """Choose the files of a base model.

    Args:
        folder: Folder in the Hugging Face layout; its files may be links, as in the hub's cache.

    Raises:
        UsageError: It has no config.json or no safetensors weights.
    """
    sources = {
        path.name: path for path in sorted(folder.iterdir()) if path.is_file() and _is_wanted(path.name)
    }
    if "config.json" not in sources:
        raise UsageError(
            "base-model-incomplete", f"{shown(folder)} has no config.json; is it a model's folder?"
        )
    if not any(name.endswith(".safetensors") for name in sources):
        raise UsageError(
            "base-model-incomplete",
            f"{shown(folder)} has no .safetensors weights. Pickled ones (.bin, .pt) are not taken: load "
            "the model with transformers and save it with save_pretrained(folder, safe_serialization=True).",
        )
    return BaseModelSelection(sources=sources, left_out=tuple(_left_out(folder, sources)))


def _is_wanted(name: str) -> bool:
    return not name.startswith(".") and any(fnmatch(name, pattern) for pattern in _WANTED_PATTERNS)


def _left_out(folder: Path, sources: dict[str, Path]) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.name not in sources:
            yield f"{path.name}/" if path.is_dir() else path.name
