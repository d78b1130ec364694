"""A configuration that people write, as JSON, TOML or YAML; what it means is checked by the server."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from client.errors import UsageError
from client.suite_folder import read_json_object
from registry.artifacts.findings import shown


def read_configuration(path: Path) -> dict[str, object]:
    """Return the object in a file: TOML for ``.toml``, YAML for ``.yaml`` and ``.yml``, else JSON.

    Raises:
        UsageError: The file cannot be read (the message names the line), holds no object or something that
            JSON cannot say, or is YAML and PyYAML is not installed.
    """
    readers = {".toml": _read_toml, ".yaml": _read_yaml, ".yml": _read_yaml}
    read = readers.get(path.suffix.lower())
    if read is None:
        return read_json_object(path)
    try:
        content = read(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        message = f"{shown(path)} cannot be read: {error.strerror or error}."
        raise UsageError("file-unreadable", message) from error
    except (ValueError, RecursionError) as error:
        raise UsageError("config-invalid", f"{shown(path)} cannot be read: {shown(error)}.") from error
    if not isinstance(content, dict):
        raise UsageError("config-invalid", f"{shown(path)} must hold an object at its top level.")
    return _require_json(content, path)


def _read_toml(text: str) -> Any:
    return tomllib.loads(text)


def _read_yaml(text: str) -> Any:
    try:
        import yaml  # the base install has none
    except ImportError as error:
        message = (
            "Reading YAML needs the package PyYAML, which the base install does not bring: pip install "
            "pyyaml, or write the configuration as TOML or JSON."
        )
        raise UsageError("yaml-not-installed", message) from error

    class Loader(yaml.SafeLoader):
        """SafeLoader with the numbers of YAML 1.2: to PyYAML alone ``2e-4`` is a text."""

    number = re.compile(r"^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    try:
        return yaml.load(text, Loader)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ValueError(f"{error.problem}{place}") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _require_json(content: dict[str, object], path: Path) -> dict[str, object]:
    """Return the content as it goes to the server; dates and NaN exist in TOML and YAML only."""
    try:
        value: dict[str, object] = json.loads(json.dumps(content, allow_nan=False))
    except (TypeError, ValueError) as error:
        message = f"{shown(path)} holds a value that JSON cannot say: {shown(error)}."
        raise UsageError("config-invalid", message) from error
    return value
