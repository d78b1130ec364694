"""Begins variations of a training run: a remedy for forgetting, ready to be tried (MISSION F8)."""

from dataclasses import dataclass

from registry.choices import TokenScope
from registry.errors import Fault
from registry.models import DatasetVersion
from registry.models.fields import MAX_NAME_LENGTH
from registry.services.actors import Actor
from registry.services.names import find_name_fault
from training.choices import TrainingPurpose
from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid
from training.engine.remedies import ChangedConfig, Remedy, apply_remedy
from training.errors import TrainingInvalid
from training.models import TrainingRun
from training.services.general_rows import add_general_rows
from training.services.run_requests import RunInputs, TrainingRequest
from training.services.runs import begin_run


@dataclass(frozen=True, slots=True, kw_only=True)
class VariationRequest:
    """What a client asks for.

    Attributes:
        remedy: A `Remedy`.
        name: Of the new run; None takes the old name with the remedy behind it.
        general_dataset: "name@number" of the general data for `more-general-data`; None lets the server
            choose. Of no use to other remedies, and refused there.
        note: For people; what was changed is put before it.
        allow_lint_errors: As in `TrainingRequest`.
    """

    remedy: str
    name: str | None = None
    general_dataset: str | None = None
    note: str = ""
    allow_lint_errors: bool = False


def create_variation(*, run: TrainingRun, request: VariationRequest, actor: Actor) -> TrainingRun:
    """Begins a run that differs from another by one remedy; the other becomes its parent.

    Raises:
        ScopeError: the actor may not submit.
        TrainingInvalid: the request has faults (`variation-invalid`), the remedy does not apply to the run
            (`remedy-not-applicable`), there is no general data for it (`general-data-missing`), or the rules
            find errors in the result (`training-lint-failed`).
    """
    actor.require(TokenScope.SUBMIT)
    remedy = _require_valid(request)
    config = _read_config(run)
    try:
        changed = apply_remedy(config, remedy)
    except ConfigInvalid as error:
        fault = Fault(code=error.code, message=error.message, where="/remedy")
        raise TrainingInvalid(error.code, error.message, faults=[fault]) from error
    datasets = list(run.datasets.select_related("dataset").order_by("pk"))
    what, datasets = _with_data(datasets, changed, remedy, request, actor)
    inputs = RunInputs(
        base_model=run.base_model,
        datasets=datasets,
        holdout=run.holdout,
        given=changed.config,
        config=changed.config,
    )
    return begin_run(
        inputs=inputs,
        request=TrainingRequest(
            name=request.name or name_variation(run.name, remedy),
            base_model_name=run.base_model.name,
            datasets=[str(version) for version in datasets],
            holdout=None if run.holdout is None else str(run.holdout),
            config=changed.config.to_json(),
            purpose=TrainingPurpose(run.purpose).value,
            note=f"{what} {request.note}".strip(),
            allow_lint_errors=request.allow_lint_errors,
        ),
        actor=actor,
        parent=run,
        remedy=remedy.value,
    )


def name_variation(name: str, remedy: Remedy) -> str:
    """The name with the remedy behind it, cut so that it stays a name.

    >>> name_variation("tickets", Remedy.LOWER_RATE)
    'tickets-lower-rate'
    """
    kept = name[: MAX_NAME_LENGTH - len(remedy.value) - 1].rstrip("-._")
    return f"{kept}-{remedy.value}"


def _require_valid(request: VariationRequest) -> Remedy:
    faults = []
    if request.name is not None and (fault := find_name_fault(request.name, where="/name")) is not None:
        faults.append(fault)
    known = [remedy.value for remedy in Remedy]
    if request.remedy not in known:
        message = f"{request.remedy!r} is no remedy; use one of {', '.join(known)}."
        faults.append(Fault(code="remedy-unknown", message=message, where="/remedy"))
    elif request.general_dataset is not None and request.remedy != Remedy.MORE_GENERAL_DATA:
        message = f"Only {Remedy.MORE_GENERAL_DATA} takes general data; leave general_dataset out."
        faults.append(Fault(code="general-dataset-unused", message=message, where="/general_dataset"))
    if faults:
        raise TrainingInvalid("variation-invalid", faults=faults)
    return Remedy(request.remedy)


def _read_config(run: TrainingRun) -> TrainingConfig:
    try:
        return TrainingConfig.from_json(run.config)
    except ConfigInvalid as error:
        message = f"The configuration of {run.name} is of another version of this program: {error.message}"
        fault = Fault(code="config-of-another-version", message=message)
        raise TrainingInvalid("config-of-another-version", message, faults=[fault]) from error


def _with_data(
    datasets: list[DatasetVersion],
    changed: ChangedConfig,
    remedy: Remedy,
    request: VariationRequest,
    actor: Actor,
) -> tuple[str, list[DatasetVersion]]:
    if remedy is not Remedy.MORE_GENERAL_DATA:
        return changed.what, datasets
    added = add_general_rows(datasets=datasets, reference=request.general_dataset, actor=actor)
    return added.what, [*datasets, added.version]
