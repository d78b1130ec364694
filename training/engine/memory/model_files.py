"""A base model's config.json, and how many parameters its weight files hold, by their headers alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from registry.artifacts.errors import SafetensorsError
from registry.artifacts.findings import shown
from registry.artifacts.json_files import JsonFileError, load_json_object
from registry.artifacts.safetensors_header import read_header
from training.engine.errors import ConfigInvalid

CONFIG_FILE: Final = "config.json"
_WEIGHTS: Final = "model*.safetensors"
"""Other files of weights, such as consolidated.safetensors, hold the same parameters once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """What is known of a model on this machine.

    Attributes:
        config: Content of config.json.
        num_stored_parameters: What the weight files beside it hold; None where there are none or one cannot
            be read.
    """

    config: Mapping[str, Any]
    num_stored_parameters: int | None


def read_model_files(path: Path) -> ModelFiles:
    """Read a folder with config.json, or a file that is one.

    Raises:
        ConfigInvalid: ``model-config-missing`` when a folder has no config.json, ``model-config-unreadable``
            when it is no JSON object.
        OSError: The file cannot be read.
    """
    if not path.is_dir():
        return ModelFiles(config=_read_config(path), num_stored_parameters=None)
    config = path / CONFIG_FILE
    if not config.is_file():
        message = f"{shown(path)} has no {CONFIG_FILE}; name the folder of a base model, or the file itself."
        raise ConfigInvalid("model-config-missing", message)
    return ModelFiles(config=_read_config(config), num_stored_parameters=_count_stored(path))


def _read_config(path: Path) -> Mapping[str, Any]:
    try:
        return load_json_object(path)
    except JsonFileError as error:
        message = f"{shown(path)} cannot be read: {error}."
        raise ConfigInvalid("model-config-unreadable", message) from error


def _count_stored(folder: Path) -> int | None:
    try:
        headers = [read_header(path) for path in sorted(folder.glob(_WEIGHTS))]
    except (SafetensorsError, OSError):
        # Damaged weights are another command's business; the estimate needs none.
        return None
    return sum(tensor.num_elements for header in headers for tensor in header.tensors.values()) or None
