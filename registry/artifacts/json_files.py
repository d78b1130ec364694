"""Reads small JSON files written by strangers: bounded size, strict (no NaN, no doubled names), objects only.

Standard library only.
"""

import json
from pathlib import Path
from typing import Any, NoReturn

from registry.artifacts.findings import Finding, shown

MAX_JSON_BYTES = 64 << 20  # tokenizer and index files of large models take some tens of MB


class JsonFileError(ValueError):
    """The file is not one strict JSON object."""


def parse_json_object(text: str) -> dict[str, Any]:
    """Parse one JSON object.

    Raises:
        JsonFileError: not JSON, NaN or infinity, a name twice in one object, too deeply nested, or no object.
    """
    try:
        value = json.loads(text, object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise JsonFileError(f"not valid JSON: {shown(error)}") from error
    if not isinstance(value, dict):
        raise JsonFileError("not a JSON object")
    return value


def load_json_object(path: Path) -> dict[str, Any]:
    """Read a file as one JSON object.

    Raises:
        JsonFileError: as for `parse_json_object`, or the file is too large or not UTF-8.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        raw = file.read(MAX_JSON_BYTES + 1)
    if len(raw) > MAX_JSON_BYTES:
        raise JsonFileError(f"larger than {MAX_JSON_BYTES} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise JsonFileError(f"not UTF-8: {error.reason} at byte {error.start}") from error
    return parse_json_object(text)


def read_json_object(
    path: Path, findings: list[Finding], *, code: str, is_required: bool = False
) -> dict[str, Any]:
    """Read a file as one JSON object; when that fails, add a finding and return an empty one.

    Args:
        path: the file.
        findings: gets `<code>-missing` (only when required) or `<code>-invalid`.
        code: beginning of the findings' codes.
        is_required: whether a missing file is a fault.
    """
    if not path.is_file():
        if is_required:
            message = f"{path.name} is missing."
            findings.append(
                Finding.error(f"{code}-missing", message, where=path.name, remedy="Add the file.")
            )
        return {}
    try:
        return load_json_object(path)
    except JsonFileError as error:
        message = f"{path.name} cannot be read: {error}."
        findings.append(
            Finding.error(f"{code}-invalid", message, where=path.name, remedy="Write the file again.")
        )
        return {}


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"the name {shown(name)!r} appears twice")
        result[name] = value
    return result


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")
