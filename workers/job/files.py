"""Reading and writing the small JSON files of a work folder."""

import json
import os
from pathlib import Path
from typing import Any

from workers.job.errors import JobFolderError


def write_atomic(path: Path, text: str) -> None:
    """Writes a file so that it is either complete, and on the disk, or absent."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_json(path: Path, *, code: str) -> dict[str, Any]:
    """Reads a JSON object.

    Args:
        path: The file.
        code: Code of the error when it cannot be read.

    Raises:
        JobFolderError: no such file, not UTF-8, no JSON, or no object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise JobFolderError(code, f"{path.name} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise JobFolderError(code, f"{path.name} must hold a JSON object.")
    return value
