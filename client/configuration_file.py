"""A configuration that people write, as JSON, TOML or YAML; what it means is checked by the server."""

import json
from pathlib import Path

from client.errors import UsageError
from client.suite_folder import read_json_object
from registry.artifacts.configuration_text import SUFFIXES, YamlNotInstalled, parse_configuration
from registry.artifacts.findings import shown


def read_configuration(path: Path) -> dict[str, object]:
    """Return the object in a file: TOML for ``.toml``, YAML for ``.yaml`` and ``.yml``, else JSON.

    Raises:
        UsageError: The file cannot be read (the message names the line), holds no object or something that
            JSON cannot say, or is YAML and PyYAML is not installed.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        return read_json_object(path)
    try:
        content = parse_configuration(path.read_text(encoding="utf-8-sig"), suffix)
    except YamlNotInstalled as error:
        message = (
            "Reading YAML needs the package PyYAML, which the base install does not bring: pip install "
            "pyyaml, or write the configuration as TOML or JSON."
        )
        raise UsageError("yaml-not-installed", message) from error
    except OSError as error:
        message = f"{shown(path)} cannot be read: {error.strerror or error}."
        raise UsageError("file-unreadable", message) from error
    except (ValueError, RecursionError) as error:
        raise UsageError("config-invalid", f"{shown(path)} cannot be read: {shown(error)}.") from error
    if not isinstance(content, dict):
        raise UsageError("config-invalid", f"{shown(path)} must hold an object at its top level.")
    return _require_json(content, path)


def _require_json(content: dict[str, object], path: Path) -> dict[str, object]:
    """Return the content as it goes to the server; dates and NaN exist in TOML and YAML only."""
    try:
        value: dict[str, object] = json.loads(json.dumps(content, allow_nan=False))
    except (TypeError, ValueError) as error:
        message = f"{shown(path)} holds a value that JSON cannot say: {shown(error)}."
        raise UsageError("config-invalid", message) from error
    return value
