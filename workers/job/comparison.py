"""Whether two runs of a job gave the same result.

Everything under a key named "timing" is left out, in values and in JSON and JSON Lines files of the
outputs: how long something took never repeats. All else must be equal to the byte.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from registry.artifacts.digests import digest_json
from registry.artifacts.errors import DigestError
from workers.job.result import JobResult

TIMING_KEY = "timing"
MAX_JSON_BYTES = 256 * 1024**2
"""Larger JSON files are compared by their bytes."""


def digest_outputs(folder: Path) -> dict[str, str]:
    """Returns the digest of every file below a folder by its relative path, timings left out."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in paths}


def digest_file(path: Path) -> str:
    """Returns the sha256 of a file: of its values without timings where it is JSON, else of its bytes."""
    if path.suffix in (".json", ".jsonl") and path.stat().st_size <= MAX_JSON_BYTES:
        try:
            return digest_json(without_timing(_read_values(path)))
        except (ValueError, RecursionError, DigestError):
            # Not the JSON that the name promises: the bytes count.
            pass
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_values(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.loads(text)
    # Not splitlines(): texts of models hold other line separators.
    return [json.loads(line) for line in text.split("\n") if line]


def with_timing(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Returns values in which the named ones stand under the key "timing"."""
    rest = {name: value for name, value in values.items() if name not in names}
    return {**rest, TIMING_KEY: {name: values[name] for name in names if name in values}}


def without_timing(value: Any) -> Any:
    """Returns a JSON value without what stands under a key named "timing"."""
    if isinstance(value, dict):
        return {key: without_timing(item) for key, item in value.items() if key != TIMING_KEY}
    if isinstance(value, list):
        return [without_timing(item) for item in value]
    return value


def find_differences(stored: JobResult, fresh: JobResult) -> list[str]:
    """Lists where two results differ, in words; an empty list means that they agree."""
    if stored.status != fresh.status:
        return [f"status: {stored.status} before, {fresh.status} now"]
    if stored.failure is not None and fresh.failure is not None:
        return list(_diff(stored.failure.to_json(), fresh.failure.to_json(), "failure"))
    return [
        *_diff(without_timing(dict(stored.values)), without_timing(dict(fresh.values)), "values"),
        *_diff(stored.output_digests, fresh.output_digests, "outputs"),
    ]


def _diff(before: Any, now: Any, where: str) -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted(before.keys() | now.keys()):
            if key not in before or key not in now:
                yield f"{where}/{key}: only {'now' if key in now else 'before'}"
            else:
                yield from _diff(before[key], now[key], f"{where}/{key}")
    elif before != now:
        yield f"{where}: {_shown(before)} before, {_shown(now)} now"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 120 else text[:119] + "…"
