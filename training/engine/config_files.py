"""Reading a training configuration out of one file: JSON, TOML or YAML by its ending."""

from pathlib import Path
from typing import Any, Final

from registry.artifacts.configuration_text import SUFFIXES, YamlNotInstalled, parse_configuration
from registry.artifacts.findings import shown
from registry.artifacts.json_files import parse_json_object
from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid

MAX_CONFIG_BYTES: Final = 1 << 20


def read_training_config(path: Path) -> TrainingConfig:
    """Read and check a configuration.

    Raises:
        ConfigInvalid: ``config-unreadable`` with line and column, ``yaml-not-installed``, or
            ``training-config-invalid`` with every fault and its place.
    """
    return TrainingConfig.from_json(read_config_object(path))


def read_config_object(path: Path) -> dict[str, Any]:
    """Return the object in a file: TOML for ``.toml``, YAML for ``.yaml`` and ``.yml``, else JSON.

    Raises:
        ConfigInvalid: ``config-unreadable`` or ``yaml-not-installed``.
    """
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ValueError(f"it is larger than {MAX_CONFIG_BYTES} bytes")
        text = path.read_text(encoding="utf-8-sig")
        content = _parse(text, path.suffix.lower())
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(content, dict):
        raise _unreadable(path, "its top level is no object")
    return content


def _parse(text: str, suffix: str) -> Any:
    if suffix not in SUFFIXES:
        return parse_json_object(text)
    try:
        return parse_configuration(text, suffix)
    except YamlNotInstalled as error:
        raise ConfigInvalid(
            "yaml-not-installed",
            "Reading YAML needs the package pyyaml: pip install pyyaml, or write the configuration as TOML "
            "or JSON.",
        ) from error


def _unreadable(path: Path, reason: str) -> ConfigInvalid:
    return ConfigInvalid("config-unreadable", f"{shown(path)} cannot be read: {shown(reason)}.")
