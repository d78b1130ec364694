"""What config.json of a base model tells the rules."""

from dataclasses import dataclass
from pathlib import Path

from registry.artifacts.findings import shown
from registry.artifacts.json_files import JsonFileError, load_json_object
from training.engine.errors import BaseModelUnavailable, ConfigInvalid
from training.engine.memory.model_shape import ModelShape, read_model_shape


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFacts:
    """A base model by its config.json.

    Attributes:
        shape: None when the architecture's shape cannot be told from the keys.
        dtype: Of the weights, such as "bfloat16"; None when it is not stated.
        note: Why the shape is unknown; "" when it is known.
    """

    shape: ModelShape | None
    dtype: str | None
    note: str = ""


def read_base_facts(folder: Path) -> BaseFacts:
    """Read a base model's config.json.

    Raises:
        BaseModelUnavailable: ``base-config-unreadable``.
    """
    try:
        config = load_json_object(folder / "config.json")
    except (OSError, JsonFileError) as error:
        message = f"config.json of {shown(folder)} cannot be read: {shown(error)}."
        raise BaseModelUnavailable("base-config-unreadable", message) from error
    # transformers 5 writes "dtype", older ones "torch_dtype"; in composed models the text part may state it.
    text = config.get("text_config")
    stated = [part.get(name) for part in (config, text) if isinstance(part, dict) for name in _DTYPE_KEYS]
    dtype = next((value for value in stated if isinstance(value, str)), None)
    try:
        return BaseFacts(shape=read_model_shape(config), dtype=dtype)
    except ConfigInvalid as error:
        return BaseFacts(shape=None, dtype=dtype, note=error.message)


_DTYPE_KEYS = ("dtype", "torch_dtype")
