"""A suite as a folder on disk: suite.json with the four sets beside it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from client.errors import ErrorDetail, UsageError
from registry.artifacts.findings import shown

SUITE_ROLES = ("holdout", "ood", "regression", "canary")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFolder:
    """A suite's definition and, by role, the file of each set."""

    name: str
    definition: Mapping[str, object]
    files: Mapping[str, Path]


def read_json_object(path: Path) -> dict[str, object]:
    """Return the JSON object in a file.

    Raises:
        UsageError: The file cannot be read, or holds something else; the message names the line.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            "file-unreadable", f"{shown(path)} cannot be read: {error.strerror or error}."
        ) from error
    except json.JSONDecodeError as error:
        message = f"{shown(path)} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        raise UsageError("json-invalid", message) from error
    except UnicodeDecodeError as error:
        raise UsageError("json-invalid", f"{shown(path)} is not UTF-8 (byte {error.start}).") from error
    if not isinstance(value, dict):
        raise UsageError("json-invalid", f"{shown(path)} must hold a JSON object.")
    return value


def read_suite_folder(folder: Path) -> SuiteFolder:
    """Read a suite's folder. What the definition means is checked by the server.

    Raises:
        UsageError: Files are missing (all of them are listed), or suite.json has no name.
    """
    definition_path = folder / "suite.json"
    files = {role: folder / f"{role}.jsonl" for role in SUITE_ROLES}
    missing = [path for path in (definition_path, *files.values()) if not path.is_file()]
    if missing:
        raise UsageError(
            "suite-incomplete",
            f"{shown(folder)} is not a whole suite.",
            details=tuple(
                ErrorDetail(code="file-missing", message="The file is missing.", where=path.name)
                for path in missing
            ),
        )
    definition = read_json_object(definition_path)
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise UsageError("suite-invalid", f"{shown(definition_path)} has no 'name'.")
    return SuiteFolder(name=name, definition=definition, files=files)
