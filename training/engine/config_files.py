"""Reading a training configuration out of one file: JSON, TOML or YAML by its ending."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from registry.artifacts.findings import shown
from registry.artifacts.json_files import parse_json_object
from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid

MAX_CONFIG_BYTES: Final = 1 << 20
_YAML_SUFFIXES: Final = (".yaml", ".yml")
_FLOAT: Final = re.compile(r"^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$")
"""Numbers as YAML 1.2 has them. PyYAML follows YAML 1.1, in which ``2e-4`` is a text."""


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
    if suffix == ".toml":
        return tomllib.loads(text)
    if suffix in _YAML_SUFFIXES:
        return _parse_yaml(text)
    return parse_json_object(text)


def _parse_yaml(text: str) -> Any:
    try:
        import yaml  # only installed with the data extra; JSON and TOML need nothing
    except ImportError as error:
        raise ConfigInvalid(
            "yaml-not-installed",
            "Reading YAML needs the package pyyaml: pip install pyyaml, or write the configuration as TOML "
            "or JSON.",
        ) from error

    class Loader(yaml.SafeLoader):
        """SafeLoader with the numbers of YAML 1.2 and without repeated keys."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            repeated = next((name for name in names if names.count(name) > 1), None)
            if repeated is not None:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {shown(repeated)} is written twice", problem_mark=node.start_mark
                )
            return super().construct_mapping(node, deep)

    # After YAML 1.1's own rules, so that whole numbers stay whole.
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
    try:
        return yaml.load(text, Loader)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ValueError(f"{error.problem}{place}") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _unreadable(path: Path, reason: str) -> ConfigInvalid:
    return ConfigInvalid("config-unreadable", f"{shown(path)} cannot be read: {shown(reason)}.")
