"""What makes two attempts the same training, so that one may go on from the other's checkpoint."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from registry.artifacts.digests import digest_json
from training.engine.chat import ChatRow
from training.engine.config import TrainingConfig

_WITHOUT_EFFECT: Final = ("log_every_steps", "save_every_steps", "max_minutes")
"""Settings that change neither the weights nor what is measured of them."""


def identify_run(
    *,
    base_model: Path,
    rows: Iterable[ChatRow],
    held_out: Iterable[ChatRow],
    config: TrainingConfig,
    libraries: dict[str, str],
) -> str:
    """Return the sha256 of everything that decides a training.

    The base counts by its configuration and the names and sizes of its files: a checkpoint belongs to one
    job, whose base is fixed by its digest, and hashing the weights at each start would take minutes. The
    number of processes does not count: a training may go on with another one.

    Args:
        base_model: Hugging Face folder.
        rows: As rendered, in order.
        held_out: Likewise.
        config: Of the run.
        libraries: Name to version.
    """
    settings: dict[str, Any] = config.to_json()
    settings.pop("preflight")
    for name in _WITHOUT_EFFECT:
        settings["training"].pop(name)
    return digest_json(
        {
            "config": settings,
            "rows": _digest_rows(rows),
            "held_out": _digest_rows(held_out),
            "base_config": hashlib.sha256((base_model / "config.json").read_bytes()).hexdigest(),
            "base_files": {
                path.name: path.stat().st_size for path in sorted(base_model.glob("*.safetensors"))
            },
            "libraries": libraries,
        }
    )


def _digest_rows(rows: Iterable[ChatRow]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(f"{row.num_prompt_tokens} {' '.join(map(str, row.input_ids))}\n".encode())
    return digest.hexdigest()
