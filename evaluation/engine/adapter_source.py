"""Prepares an adapter folder for an engine: its digest, its rank, and a path that holds the digest.

vLLM tells adapters apart by name and caches by name and path (vllm 42125), so both carry the digest of the
bytes.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from evaluation.engine.backends.base import AdapterSource
from evaluation.engine.errors import EvaluationError

WEIGHTS_FILE: Final = "adapter_model.safetensors"
CONFIG_FILE: Final = "adapter_config.json"
MAX_HEADER_BYTES: Final = 100 * 2**20
"""Limit of the safetensors format itself."""


def prepare_adapter(adapter: Path, link_folder: Path) -> AdapterSource:
    """Link an adapter folder under a name with its digest.

    Args:
        adapter: Folder with the adapter's configuration and weights.
        link_folder: Where the link is made.

    Raises:
        EvaluationError: The folder is no adapter (``adapter-unreadable``).
    """
    weights, config = adapter / WEIGHTS_FILE, adapter / CONFIG_FILE
    missing = [path.name for path in (weights, config) if not path.is_file()]
    if missing:
        raise EvaluationError("adapter-unreadable", f"the adapter folder lacks {' and '.join(missing)}")
    digest = hashlib.sha256(config.read_bytes())
    with weights.open("rb") as stream:
        digest.update(hashlib.file_digest(stream, "sha256").digest())
    name = f"adapter-{digest.hexdigest()[:32]}"
    link_folder.mkdir(parents=True, exist_ok=True)
    link = link_folder / name
    link.unlink(missing_ok=True)
    link.symlink_to(adapter.resolve(), target_is_directory=True)
    return AdapterSource(path=link, name=name, rank=adapter_rank(weights))


def adapter_rank(weights: Path) -> int:
    """Return the highest rank among an adapter's tensors, from the file's header (the configuration may
    differ).

    Raises:
        EvaluationError: The header cannot be read, or holds no LoRA tensor (``adapter-unreadable``).
    """
    header = _read_header(weights)
    shapes = [
        entry["shape"]
        for name, entry in header.items()
        if (".lora_A" in name or ".lora_embedding_A" in name) and len(entry.get("shape", ())) == 2
    ]
    if not shapes:
        raise EvaluationError("adapter-unreadable", f"{weights.name} holds no LoRA tensor")
    return max(int(shape[0]) for shape in shapes)


def _read_header(weights: Path) -> dict[str, Any]:
    with weights.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if size > min(MAX_HEADER_BYTES, weights.stat().st_size):
            raise EvaluationError("adapter-unreadable", f"{weights.name} states a header of {size} bytes")
        try:
            header = json.loads(stream.read(size))
        except ValueError as error:
            raise EvaluationError(
                "adapter-unreadable", f"the header of {weights.name} is not JSON"
            ) from error
    if not isinstance(header, dict):
        raise EvaluationError("adapter-unreadable", f"the header of {weights.name} is no object")
    return header
