"""Checks what a client asks of a preparation, and answers every fault at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.choices import EVALUATION_ROLES, TRAINING_ROLES, DatasetRole
from registry.errors import ConflictError, Fault
from registry.models import BaseModel, DatasetVersion
from registry.selectors.base_models import get_base_model
from registry.services.artifacts import manifest_of
from registry.services.datasets import require_dataset_role
from registry.services.lookups import look_up
from registry.services.names import find_name_fault
from training.engine.data.recipe import Recipe
from training.engine.errors import ConfigInvalid
from training.errors import TrainingInvalid
from training.models import RawData
from training.selectors.raw_data import get_raw_data
from training.services.dataset_lookups import config_faults, find_dataset

TOKENIZER_FILE = "tokenizer.json"
MAX_EVALUATION_SETS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationRequest:
    """What a client asks for.

    Attributes:
        name: The dataset that the main set becomes a version of; other sets go to `name-<role>`.
        raw_data: Id of raw data, or a name, whose newest is then taken.
        recipe: As in `training.engine.data.recipe.Recipe`; missing keys take their defaults.
        general: "name@number" of general instruction data to mix in; None when there is none.
        unchanged: "name@number" of examples with nothing to change, likewise.
        evaluation_sets: "name@number" of evaluation sets in which no training example may stand.
        base_model_name: A base model whose tokenizer measures lengths; None leaves token lengths out.
    """

    name: str
    raw_data: str
    recipe: Mapping[str, Any]
    general: str | None = None
    unchanged: str | None = None
    evaluation_sets: Sequence[str] = ()
    base_model_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationInputs:
    """The same, looked up and checked."""

    raw: RawData
    recipe: Recipe
    general: DatasetVersion | None
    unchanged: DatasetVersion | None
    evaluation_sets: tuple[DatasetVersion, ...]
    base_model: BaseModel | None


def dataset_name_of(name: str, role: str, *, main_role: str) -> str:
    """The dataset of one set of a preparation: NAME for the main set, NAME-<role> for the others."""
    return name if role == main_role else f"{name}-{role}"


def require_valid(request: PreparationRequest) -> PreparationInputs:
    """Looks up everything that the request names.

    Raises:
        TrainingInvalid: with every fault at once (code `preparation-invalid`).
    """
    faults: list[Fault] = []
    raw = look_up(faults, "/raw_data", lambda: get_raw_data(request.raw_data))
    recipe = _read_recipe(faults, request.recipe)
    faults += _find_name_faults(request.name, recipe)
    general = _find_optional(faults, request.general, "/general", (DatasetRole.GENERAL,))
    unchanged = _find_optional(faults, request.unchanged, "/unchanged", TRAINING_ROLES)
    sets = [
        find_dataset(faults, reference, f"/evaluation_sets/{index}", EVALUATION_ROLES)
        for index, reference in enumerate(dict.fromkeys(request.evaluation_sets))
    ]
    base_model = _find_tokenizer(faults, request.base_model_name)
    if recipe is not None:
        faults += _find_mix_faults(request, recipe)
    if faults or raw is None or recipe is None:
        raise TrainingInvalid("preparation-invalid", faults=faults)
    return PreparationInputs(
        raw=raw,
        recipe=recipe,
        general=general,
        unchanged=unchanged,
        evaluation_sets=tuple(dict.fromkeys(item for item in sets if item is not None)),
        base_model=base_model,
    )


def _read_recipe(faults: list[Fault], recipe: Mapping[str, Any]) -> Recipe | None:
    try:
        return Recipe.from_json(recipe)
    except ConfigInvalid as error:
        faults.extend(config_faults(error, below="/recipe"))
    return None


def _find_name_faults(name: str, recipe: Recipe | None) -> list[Fault]:
    """Faults of the name, and of the datasets that the sets will go to: better known before the job than
    after it.
    """
    if (fault := find_name_fault(name, where="/name")) is not None:
        return [fault]
    if recipe is None:
        return []
    roles = [recipe.role] if recipe.split is None else [recipe.role, DatasetRole.HOLDOUT.value]
    faults = []
    for role in roles:
        dataset = dataset_name_of(name, role, main_role=recipe.role)
        if (fault := find_name_fault(dataset, where="/name")) is not None:
            faults.append(fault)
            continue
        try:
            require_dataset_role(name=dataset, role=role)
        except ConflictError as error:
            faults.append(
                Fault(
                    code=error.code,
                    message=f"The {role} set would go to it. {error.detail}",
                    where="/name",
                    remedy="Choose another name.",
                )
            )
    return faults


def _find_optional(
    faults: list[Fault], reference: str | None, where: str, roles: Sequence[str]
) -> DatasetVersion | None:
    return None if reference is None else find_dataset(faults, reference, where, roles)


def _find_tokenizer(faults: list[Fault], name: str | None) -> BaseModel | None:
    if name is None:
        return None
    base_model = look_up(faults, "/base_model", lambda: get_base_model(name))
    if base_model is not None and manifest_of(base_model.artifact_id).file(TOKENIZER_FILE) is None:
        message = f"Base model {base_model} has no {TOKENIZER_FILE}, so it cannot measure lengths in tokens."
        faults.append(Fault(code="tokenizer-missing", message=message, where="/base_model"))
        return None
    return base_model


def _find_mix_faults(request: PreparationRequest, recipe: Recipe) -> list[Fault]:
    fractions = {
        "general": 0.0 if recipe.mix is None else recipe.mix.general_fraction,
        "unchanged": 0.0 if recipe.mix is None else recipe.mix.unchanged_fraction,
    }
    faults = []
    for part, fraction in fractions.items():
        is_given = getattr(request, part) is not None
        if fraction > 0 and not is_given:
            message = f"The recipe mixes in {fraction:g} of {part} examples, but no dataset of them is named."
            faults.append(Fault(code=f"{part}-missing", message=message, where=f"/{part}"))
        elif is_given and fraction == 0:
            message = f"A dataset of {part} examples is named, but the recipe mixes in none of it."
            remedy = f"Set mix.{part}_fraction, or leave the dataset out."
            faults.append(Fault(code=f"{part}-unused", message=message, where=f"/{part}", remedy=remedy))
    return faults
