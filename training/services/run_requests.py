"""What is asked for when a training run is begun, checked with every fault at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from registry.choices import TRAINING_ROLES, DatasetRole
from registry.errors import Fault
from registry.models import BaseModel, DatasetVersion
from registry.selectors.base_models import get_base_model
from registry.services.datasets import DATA_FILE
from registry.services.lookups import look_up
from registry.services.names import find_name_fault
from training.choices import TrainingPurpose
from training.engine.config import TrainingConfig
from training.engine.data.jsonl import GENERAL_FOLDER
from training.engine.errors import ConfigInvalid
from training.engine.mini.overlay import overlay_settings
from training.errors import TrainingInvalid
from training.models import TrainingRun
from training.selectors.mini_configurations import get_mini_overlay
from training.selectors.runs import get_training_run
from training.services.dataset_lookups import config_faults, find_dataset

MAX_NOTE_CHARACTERS = 2000
_HELD_OUT_ROLES = (DatasetRole.HOLDOUT, DatasetRole.TRAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """What a client asks for.

    Attributes:
        name: For people; need not be unique.
        base_model_name: A registered base model.
        datasets: "name@number" of training and general datasets.
        holdout: "name@number" of a dataset for the held-out loss; None leaves it out.
        config: As in `training.engine.config.TrainingConfig`; missing keys take their defaults.
        purpose: A `TrainingPurpose`. For `mini` the stored settings of the small experiment are laid over the
            configuration.
        note: For people.
        parent_id: The run that this one repeats or changes; None for one of its own.
        allow_lint_errors: Begin even when the rules find errors.
    """

    name: str
    base_model_name: str
    datasets: Sequence[str]
    holdout: str | None
    config: Mapping[str, Any]
    purpose: str = TrainingPurpose.TRAINING
    note: str = ""
    parent_id: UUID | None = None
    allow_lint_errors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """What a run is made of.

    Attributes:
        given: The configuration as it was given; what the rules judge.
        config: The one that is trained with.
    """

    base_model: BaseModel
    datasets: list[DatasetVersion]
    holdout: DatasetVersion | None
    given: TrainingConfig
    config: TrainingConfig
    parent: TrainingRun | None = None


def require_valid(request: TrainingRequest) -> RunInputs:
    """Looks up what a request names.

    Raises:
        TrainingInvalid: with every fault at once (code `training-run-invalid`).
    """
    faults: list[Fault] = []
    if (fault := find_name_fault(request.name, where="/name")) is not None:
        faults.append(fault)
    base_model = look_up(faults, "/base_model", lambda: get_base_model(request.base_model_name))
    datasets = [
        find_dataset(faults, reference, f"/datasets/{index}", TRAINING_ROLES)
        for index, reference in enumerate(dict.fromkeys(request.datasets))
    ]
    if not request.datasets:
        message = "Name at least one training dataset."
        faults.append(Fault(code="datasets-missing", message=message, where="/datasets"))
    holdout = None
    if request.holdout is not None:
        holdout = find_dataset(faults, request.holdout, "/holdout", _HELD_OUT_ROLES)
    parent = None
    if (parent_id := request.parent_id) is not None:
        parent = look_up(faults, "/parent", lambda: get_training_run(parent_id))
    given = _read_config(faults, request.config)
    if faults or base_model is None or given is None:
        raise TrainingInvalid("training-run-invalid", faults=faults)
    return RunInputs(
        base_model=base_model,
        datasets=[item for item in datasets if item is not None],
        holdout=holdout,
        given=given,
        config=_for_purpose(request.purpose, request.config, given),
        parent=parent,
    )


def job_inputs(inputs: RunInputs) -> dict[str, Any]:
    """The inputs of the job, in the form of `registry.models.Job`."""
    files = {
        _training_file_name(item): {"artifact": item.artifact_id, "path": DATA_FILE}
        for item in inputs.datasets
    }
    result: dict[str, Any] = {
        "base_model": {"artifact": inputs.base_model.artifact_id},
        "training_data": {"files": dict(sorted(files.items()))},
    }
    if inputs.holdout is not None:
        result["holdout"] = {"artifact": inputs.holdout.artifact_id}
    return result


def _training_file_name(version: DatasetVersion) -> str:
    """General data goes where the engine knows it as such: it gets no system prompt of the task."""
    is_general = version.dataset.role == DatasetRole.GENERAL
    return f"{GENERAL_FOLDER}/{version}.jsonl" if is_general else f"{version}.jsonl"


def _read_config(faults: list[Fault], config: Mapping[str, Any]) -> TrainingConfig | None:
    try:
        return TrainingConfig.from_json(config)
    except ConfigInvalid as error:
        faults.extend(config_faults(error, below="/config"))
    return None


def _for_purpose(purpose: str, sent: Mapping[str, Any], given: TrainingConfig) -> TrainingConfig:
    if purpose != TrainingPurpose.MINI:
        return given
    try:
        # Over what was sent, not over what it means: so the overlay may set r and alpha stays coupled to it.
        return TrainingConfig.from_json(overlay_settings(sent, get_mini_overlay()))
    except ConfigInvalid as error:
        faults = list(config_faults(error, below="/mini_configuration"))
        raise TrainingInvalid("mini-configuration-unfit", faults=faults) from error
