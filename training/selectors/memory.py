"""The memory of a training: of a registered base model, or of a configuration that was sent."""

import functools
from collections.abc import Mapping
from typing import Any, Final

from registry.artifacts.json_files import JsonFileError, parse_json_object
from registry.errors import Fault, PayloadTooLarge
from registry.models import BaseModel
from registry.selectors.base_models import get_base_model
from registry.services.artifacts import read_file_bytes
from registry.services.lookups import look_up
from training.engine.errors import ConfigInvalid
from training.engine.memory.comparison import MemoryComparison, compare_methods
from training.engine.memory.model_files import CONFIG_FILE
from training.engine.memory.model_shape import read_model_shape
from training.engine.memory.request import EstimateRequest
from training.errors import TrainingInvalid
from training.services.dataset_lookups import config_faults

MAX_CONFIG_BYTES: Final = 1 << 20
"""Of a config.json; those of published models have some kB."""
_BASE_MODEL: Final = "/base_model"


def compare_memory(*, base_model: str | Mapping[str, Any], request: Mapping[str, Any]) -> MemoryComparison:
    """Weighs a training with each of the methods.

    Args:
        base_model: Name of a registered base model, or the content of a config.json.
        request: As `EstimateRequest.from_json` reads it.

    Raises:
        TrainingInvalid: with every fault; those of a registered model's configuration name the file.
    """
    faults: list[Fault] = []
    try:
        wanted = EstimateRequest.from_json(request)
    except ConfigInvalid as error:
        faults.extend(config_faults(error, below=""))
    config, num_stored = _find_config(faults, base_model)
    if config is not None:
        faults.extend(_shape_faults(config, is_sent=not isinstance(base_model, str)))
    if config is None or faults:
        raise TrainingInvalid("memory-estimate-invalid", faults=faults)
    try:
        return compare_methods(config, wanted, num_stored_parameters=num_stored)
    except ConfigInvalid as error:
        raise TrainingInvalid("memory-estimate-invalid", faults=config_faults(error, below="")) from error


def _find_config(
    faults: list[Fault], base_model: str | Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, int | None]:
    """The configuration and the number of parameters in the weight files; None for what is not known."""
    if not isinstance(base_model, str):
        return base_model, None
    row = look_up(faults, _BASE_MODEL, functools.partial(get_base_model, base_model))
    if row is None:
        return None, None
    return look_up(faults, _BASE_MODEL, functools.partial(read_base_config, row)), row.num_parameters


def read_base_config(row: BaseModel) -> Mapping[str, Any]:
    """The content of a registered base model's config.json.

    Raises:
        TrainingInvalid: it is no JSON object, or larger than such a file can be.
        NotFoundError: the artifact has no such file.
    """
    try:
        content = read_file_bytes(digest=row.artifact_id, path=CONFIG_FILE, max_bytes=MAX_CONFIG_BYTES)
        return parse_json_object(content.decode("utf-8-sig"))
    except (PayloadTooLarge, JsonFileError, UnicodeDecodeError) as error:
        message = f"The {CONFIG_FILE} of {row.name} cannot be read: {error}"
        fault = Fault(code="model-config-unreadable", message=message, where=_BASE_MODEL)
        raise TrainingInvalid("model-config-unreadable", faults=[fault]) from error


def _shape_faults(config: Mapping[str, Any], *, is_sent: bool) -> list[Fault]:
    try:
        read_model_shape(config)
    except ConfigInvalid as error:
        if is_sent:
            return list(config_faults(error, below=_BASE_MODEL))
        return [
            Fault(code=fault.code, message=fault.message, where=f"{CONFIG_FILE} {fault.where}")
            for fault in error.faults
        ]
    return []
