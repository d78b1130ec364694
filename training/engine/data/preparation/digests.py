"""Digests of everything that goes into a preparation: with the recipe and the code they name its result."""

import hashlib
from pathlib import Path
from typing import Any

from training.engine.data.intake.sources import list_sources
from training.engine.data.jsonl import list_jsonl_files
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.recipe import Recipe


def digest_inputs(inputs: PreparationInputs, recipe: Recipe) -> dict[str, Any]:
    """Return name, size and sha256 of every file that was read; names are relative to what was given."""
    sources, _ = list_sources(inputs.sources, recipe.intake)
    return {
        "sources": [_describe(source.name, source.path) for source in sources],
        "general": _describe_ready(inputs.general),
        "unchanged": _describe_ready(inputs.unchanged),
        "evaluation_sets": {
            name: _describe_ready(path) for name, path in sorted(inputs.evaluation_sets.items())
        },
    }


def _describe_ready(path: Path | None) -> list[dict[str, Any]]:
    return [] if path is None else [_describe(file.name, file) for file in list_jsonl_files(path)]


def _describe(name: str, path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": name, "size_bytes": path.stat().st_size, "sha256": digest}
