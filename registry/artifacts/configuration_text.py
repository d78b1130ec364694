"""Settings that people write as TOML or YAML, as plain values. Needs PyYAML for YAML, else nothing."""

import re
import tomllib
from typing import Any, Final

from registry.artifacts.findings import shown

SUFFIXES: Final = (".toml", ".yaml", ".yml")
_FLOAT: Final = re.compile(r"^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$")
"""Numbers as YAML 1.2 has them. PyYAML follows YAML 1.1, in which ``2e-4`` is a text."""


class YamlNotInstalled(ImportError):
    """YAML was to be read and PyYAML is not installed."""


def parse_configuration(text: str, suffix: str) -> Any:
    """Return the value of a text.

    Args:
        text: The content of a file.
        suffix: One of ``SUFFIXES``.

    Raises:
        ValueError: It is not well formed, or a key is written twice; the message names line and column.
        YamlNotInstalled: It is YAML, and PyYAML is missing.
    """
    return tomllib.loads(text) if suffix == ".toml" else _parse_yaml(text)


def _parse_yaml(text: str) -> Any:
    try:
        import yaml  # the base install has none
    except ImportError as error:
        raise YamlNotInstalled from error

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
