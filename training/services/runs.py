"""Training runs: begins and cancels them, and lets them follow their job.

A run's state, curves and result are copied from its job whenever somebody looks; nothing is kept in memory in
between, and looking twice changes nothing.
"""

import logging
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from registry.choices import TRAINING_ROLES, DatasetRole, JobKind, TokenScope
from registry.errors import AssayError, Fault, IllegalTransition
from registry.models import BaseModel, DatasetVersion, Job
from registry.selectors.base_models import get_base_model
from registry.selectors.jobs import list_metric_points
from registry.services.actors import SYSTEM, Actor
from registry.services.audit import record_audit
from registry.services.datasets import DATA_FILE
from registry.services.jobs import enqueue_job, request_cancel
from registry.services.lookups import look_up
from registry.services.names import find_name_fault
from training.choices import ACTIVE_TRAINING_STATES, TRAINING_TRANSITIONS, TrainingRunState
from training.engine.config import TrainingConfig
from training.engine.data.jsonl import GENERAL_FOLDER
from training.engine.errors import ConfigInvalid
from training.errors import TrainingConflict, TrainingInvalid
from training.models import MetricPoint, TrainingRun
from training.selectors.runs import get_training_run, list_active_run_ids, list_run_ids_of_job
from training.services.code_versions import TRAIN
from training.services.dataset_lookups import config_faults, find_dataset
from training.services.following import StateRules, change_state, copy_job_state, make_failure

logger = logging.getLogger(__name__)

MAX_METRIC_NAME_CHARACTERS = 48
_HELD_OUT_ROLES = (DatasetRole.HOLDOUT, DatasetRole.TRAIN)
_RULES = StateRules(noun="Training run", action="training", transitions=TRAINING_TRANSITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """What a client asks for.

    Attributes:
        name: For people; need not be unique.
        base_model_name: A registered base model.
        datasets: "name@number" of training and general datasets.
        holdout: "name@number" of a dataset for the held-out loss; None leaves it out.
        config: As in `training.engine.config.TrainingConfig`; missing keys take their defaults.
    """

    name: str
    base_model_name: str
    datasets: Sequence[str]
    holdout: str | None
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    base_model: BaseModel
    datasets: list[DatasetVersion]
    holdout: DatasetVersion | None
    config: TrainingConfig


def create_training_run(*, request: TrainingRequest, actor: Actor) -> TrainingRun:
    """Begins a training run. The same data, base and configuration again is a look-up of the earlier job's
    result.

    Raises:
        ScopeError: the actor may not submit.
        TrainingInvalid: with every fault at once (code `training-run-invalid`).
    """
    actor.require(TokenScope.SUBMIT)
    inputs = _require_valid(request)
    config = inputs.config.to_json()
    with transaction.atomic():
        job = enqueue_job(
            kind=JobKind.TRAIN,
            inputs=_job_inputs(inputs),
            config={**config, "base_model_name": inputs.base_model.name},
            code_version=TRAIN,
            subject=f"{request.name} on {inputs.base_model}",
            actor=actor,
        )
        run = TrainingRun.objects.create(
            name=request.name,
            base_model=inputs.base_model,
            holdout=inputs.holdout,
            config=config,
            job=job,
            created_by=actor.user,
        )
        run.datasets.set(inputs.datasets)
        record_audit(
            actor=actor,
            action="training.create",
            target=run,
            after={"name": run.name, "datasets": [str(item) for item in inputs.datasets], "job": str(job.pk)},
        )
    follow_job(run_id=run.pk)
    return get_training_run(run.pk)


def cancel_training_run(*, run: TrainingRun, actor: Actor) -> TrainingRun:
    """Ends a run; its job is cancelled unless another run waits for it too.

    Raises:
        ScopeError: the actor may not submit.
        TrainingConflict: the run has come to its end.
    """
    actor.require(TokenScope.SUBMIT)
    with transaction.atomic():
        locked = TrainingRun.objects.select_for_update().get(pk=run.pk)
        if locked.state not in ACTIVE_TRAINING_STATES:
            raise TrainingConflict("training-run-final", state=locked.state)
        change_state(locked, TrainingRunState.CANCELLED, actor, rules=_RULES, finished_at=timezone.now())
        if locked.job is not None and not _is_awaited(locked.job):
            request_cancel(job=locked.job, actor=actor)
    return get_training_run(run.pk)


def follow_job(*, run_id: uuid.UUID) -> None:
    """Copies what the run's job has done since the last look. An unknown id is nothing."""
    run = TrainingRun.objects.select_related("job").filter(pk=run_id).first()
    if run is None or run.state not in ACTIVE_TRAINING_STATES:
        return
    try:
        with transaction.atomic():
            locked = TrainingRun.objects.select_for_update().get(pk=run_id)
            if locked.state in ACTIVE_TRAINING_STATES:
                _copy_job(locked, run.job)
    except IllegalTransition:
        logger.info("training run %s was updated by another process", run_id)


def on_job_finished(*, job_id: uuid.UUID) -> None:
    """Updates the runs of a job that came to its end. A job that belongs to no run is nothing."""
    for run_id in list_run_ids_of_job(job_id):
        follow_job(run_id=run_id)


def reconcile_all() -> None:
    """Updates every run that has not ended; what one run raises is logged and does not stop the others."""
    for run_id in list_active_run_ids():
        try:
            follow_job(run_id=run_id)
        except (AssayError, DatabaseError, OSError):
            logger.exception("training run %s could not be updated; it is tried again", run_id)


def _is_awaited(job: Job) -> bool:
    return TrainingRun.objects.filter(job=job, state__in=ACTIVE_TRAINING_STATES).exists()


def _require_valid(request: TrainingRequest) -> _Inputs:
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
    config = _read_config(faults, request.config)
    if faults or base_model is None or config is None:
        raise TrainingInvalid("training-run-invalid", faults=faults)
    return _Inputs(
        base_model=base_model,
        datasets=[item for item in datasets if item is not None],
        holdout=holdout,
        config=config,
    )


def _read_config(faults: list[Fault], config: Mapping[str, Any]) -> TrainingConfig | None:
    try:
        return TrainingConfig.from_json(config)
    except ConfigInvalid as error:
        faults.extend(config_faults(error, below="/config"))
    return None


def _job_inputs(inputs: _Inputs) -> dict[str, Any]:
    files = {
        _training_file_name(item): {"artifact": item.artifact_id, "path": DATA_FILE}
        for item in inputs.datasets
    }
    job_inputs: dict[str, Any] = {
        "base_model": {"artifact": inputs.base_model.artifact_id},
        "training_data": {"files": dict(sorted(files.items()))},
    }
    if inputs.holdout is not None:
        job_inputs["holdout"] = {"artifact": inputs.holdout.artifact_id}
    return job_inputs


def _training_file_name(version: DatasetVersion) -> str:
    """General data goes where the engine knows it as such: it gets no system prompt of the task."""
    is_general = version.dataset.role == DatasetRole.GENERAL
    return f"{GENERAL_FOLDER}/{version}.jsonl" if is_general else f"{version}.jsonl"


def _copy_job(run: TrainingRun, job: Job | None) -> None:
    if job is not None:
        _copy_metrics(run, job)
    copy_job_state(run, job, rules=_RULES, on_success=_take_over)


def _take_over(run: TrainingRun, job: Job) -> None:
    if job.output_artifact_id is None:
        failure = make_failure("adapter-missing", f"Job {job.pk} succeeded without an adapter.")
        change_state(
            run,
            TrainingRunState.FAILED,
            SYSTEM,
            rules=_RULES,
            failure=failure,
            finished_at=job.finished_at,
        )
        return
    change_state(
        run,
        TrainingRunState.SUCCEEDED,
        SYSTEM,
        rules=_RULES,
        artifact_id=job.output_artifact_id,
        values=job.values,
        finished_at=job.finished_at,
    )


def _copy_metrics(run: TrainingRun, job: Job) -> None:
    """Copies new points. A repeated attempt measures the same steps again; its values take the place of the
    old ones.
    """
    rows = list_metric_points(job=job, after=run.num_synced_events)
    points = {
        (row.step, name): MetricPoint(run=run, step=row.step, name=name, value=float(value))
        for row in rows
        for name, value in row.values.items()
        if _is_point(row.step, name, value)
    }
    if not rows:
        return
    MetricPoint.objects.bulk_create(
        points.values(),
        update_conflicts=True,
        unique_fields=["run", "step", "name"],
        update_fields=["value"],
        batch_size=200,
    )
    run.num_synced_events = rows[-1].sequence
    run.save(update_fields=["num_synced_events"])


def _is_point(step: int, name: str, value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return is_number and step >= 0 and len(name) <= MAX_METRIC_NAME_CHARACTERS
