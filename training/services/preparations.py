"""Data preparations: begins, cancels and retries them, and lets them follow their job.

The sets of a finished job are registered as dataset versions in one transaction with the end of the
preparation: all of them or none, whatever is killed in between.
"""

import dataclasses
import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from registry.choices import JobKind, JobState, TokenScope
from registry.errors import AssayError, IllegalTransition
from registry.models import DatasetVersion, Job
from registry.services.actors import SYSTEM, Actor
from registry.services.audit import record_audit
from registry.services.datasets import DATA_FILE, SCOPES, store_dataset_version
from registry.services.jobs import enqueue_job, request_cancel
from training.choices import ACTIVE_PREPARATION_STATES, PREPARATION_TRANSITIONS, PreparationState
from training.errors import TrainingConflict
from training.models import DataPreparation, PreparedSet
from training.selectors.preparations import (
    get_preparation,
    list_active_preparation_ids,
    list_preparation_ids_of_job,
)
from training.services.code_versions import PREPARE
from training.services.following import StateRules, change_state, copy_job_state
from training.services.preparation_requests import PreparationRequest, require_valid
from training.services.prepared_sets import PreparedOutput, SetsUnusable, check_output

logger = logging.getLogger(__name__)

_RULES = StateRules(noun="Data preparation", action="preparation", transitions=PREPARATION_TRANSITIONS)


def create_preparation(*, request: PreparationRequest, actor: Actor) -> DataPreparation:
    """Begins a preparation. The same files and recipe again are a look-up of the earlier job's result, which
    gives the same dataset versions.

    Raises:
        ScopeError: the actor may neither submit nor evaluate.
        TrainingInvalid: with every fault at once (code `preparation-invalid`).
    """
    actor.require_any(SCOPES)
    inputs = require_valid(request)
    recipe = inputs.recipe.to_json()
    with transaction.atomic():
        row = DataPreparation.objects.create(
            name=request.name,
            raw=inputs.raw,
            recipe=recipe,
            general=inputs.general,
            unchanged=inputs.unchanged,
            base_model=inputs.base_model,
            created_by=actor.user,
        )
        row.evaluation_sets.set(inputs.evaluation_sets)
        row.job = _enqueue(row, inputs.evaluation_sets, actor)
        row.save(update_fields=["job"])
        record_audit(
            actor=actor,
            action="preparation.create",
            target=row,
            after={"name": row.name, "raw": str(row.raw_id), "job": str(row.job.pk)},
        )
    follow_job(preparation_id=row.pk)
    return get_preparation(row.pk)


def cancel_preparation(*, preparation: DataPreparation, actor: Actor) -> DataPreparation:
    """Ends a preparation; its job is cancelled unless another preparation waits for it too.

    Raises:
        ScopeError: the actor may neither submit nor evaluate.
        TrainingConflict: it has come to its end.
    """
    actor.require_any(SCOPES)
    with transaction.atomic():
        locked = DataPreparation.objects.select_for_update().get(pk=preparation.pk)
        if locked.state not in ACTIVE_PREPARATION_STATES:
            raise TrainingConflict("preparation-final", state=locked.state)
        change_state(locked, PreparationState.CANCELLED, actor, rules=_RULES, finished_at=timezone.now())
        if locked.job is not None and not _is_awaited(locked.job):
            # Whoever may end the preparation may end the job that exists for it alone.
            scopes = actor.scopes | {TokenScope.SUBMIT}
            request_cancel(job=locked.job, actor=dataclasses.replace(actor, scopes=scopes))
    return get_preparation(preparation.pk)


def retry_preparation(*, preparation: DataPreparation, actor: Actor) -> DataPreparation:
    """Begins a failed or cancelled preparation again, with the same inputs.

    Raises:
        ScopeError: the actor may neither submit nor evaluate.
        TrainingConflict: it has neither failed nor been cancelled.
    """
    actor.require_any(SCOPES)
    with transaction.atomic():
        locked = DataPreparation.objects.select_for_update().get(pk=preparation.pk)
        if locked.state not in (PreparationState.FAILED, PreparationState.CANCELLED):
            raise TrainingConflict("preparation-not-retryable", state=locked.state)
        job = _enqueue(locked, list(locked.evaluation_sets.all()), actor)
        change_state(
            locked,
            PreparationState.QUEUED,
            actor,
            rules=_RULES,
            job=job,
            failure=None,
            finished_at=None,
        )
    follow_job(preparation_id=preparation.pk)
    return get_preparation(preparation.pk)


def follow_job(*, preparation_id: uuid.UUID) -> None:
    """Takes over what the preparation's job has done since the last look. An unknown id is nothing."""
    row = DataPreparation.objects.select_related("job", "raw").filter(pk=preparation_id).first()
    if row is None or row.state not in ACTIVE_PREPARATION_STATES:
        return
    # Reading every line takes long, so it is done before anything is locked.
    output = _check_output(row)
    try:
        with transaction.atomic():
            locked = DataPreparation.objects.select_for_update().get(pk=preparation_id)
            # A retry may have given it another job meanwhile; then the next look sees to that one.
            if locked.state in ACTIVE_PREPARATION_STATES and locked.job_id == row.job_id:
                copy_job_state(
                    locked, row.job, rules=_RULES, on_success=lambda it, job: _take_over(it, job, output)
                )
    except IllegalTransition:
        logger.info("data preparation %s was updated by another process", preparation_id)


def on_job_finished(*, job_id: uuid.UUID) -> None:
    """Updates the preparations of a job that came to its end. A job that belongs to none is nothing."""
    for preparation_id in list_preparation_ids_of_job(job_id):
        follow_job(preparation_id=preparation_id)


def reconcile_all() -> None:
    """Updates every preparation that has not ended; what one raises is logged and does not stop the rest."""
    for preparation_id in list_active_preparation_ids():
        try:
            follow_job(preparation_id=preparation_id)
        except (AssayError, DatabaseError, OSError):
            logger.exception("data preparation %s could not be updated; it is tried again", preparation_id)


def _enqueue(row: DataPreparation, evaluation_sets: Sequence[DatasetVersion], actor: Actor) -> Job:
    inputs: dict[str, Any] = {"sources": {"artifact": row.raw.artifact_id}}
    if row.general is not None:
        inputs["general"] = {"artifact": row.general.artifact_id}
    if row.unchanged is not None:
        inputs["unchanged"] = {"artifact": row.unchanged.artifact_id}
    if evaluation_sets:
        files = {
            f"{item}.jsonl": {"artifact": item.artifact_id, "path": DATA_FILE} for item in evaluation_sets
        }
        inputs["evaluation_sets"] = {"files": dict(sorted(files.items()))}
    if row.base_model is not None:
        inputs["tokenizer"] = {"artifact": row.base_model.artifact_id}
    return enqueue_job(
        kind=JobKind.PREPARE,
        inputs=inputs,
        config=row.recipe,
        code_version=PREPARE,
        subject=f"{row.name} from {row.raw.name}",
        actor=actor,
    )


def _check_output(row: DataPreparation) -> PreparedOutput | SetsUnusable | None:
    """The sets of a succeeded job, every line checked, or why they cannot be used; None before its end."""
    if row.job is None or row.job.state != JobState.SUCCEEDED:
        return None
    try:
        return check_output(row, row.job)
    except SetsUnusable as error:
        return error


def _take_over(row: DataPreparation, job: Job, output: PreparedOutput | SetsUnusable | None) -> None:
    if output is None:
        return
    if isinstance(output, SetsUnusable):
        change_state(
            row,
            PreparationState.FAILED,
            SYSTEM,
            rules=_RULES,
            failure=output.failure,
            finished_at=job.finished_at,
        )
        return
    # The system registers what a person asked for.
    actor = dataclasses.replace(SYSTEM, user=row.created_by)
    # In the order of names, so that two transactions lock datasets in the same order.
    versions = {
        item.role: store_dataset_version(checked=item, actor=actor)[0]
        for item in sorted(output.sets, key=lambda item: item.name)
    }
    PreparedSet.objects.bulk_create(_prepared_sets(row, output, versions))
    change_state(
        row,
        PreparationState.SUCCEEDED,
        SYSTEM,
        rules=_RULES,
        report_id=job.output_artifact_id,
        values=job.values,
        finished_at=job.finished_at,
    )


def _prepared_sets(
    row: DataPreparation, output: PreparedOutput, versions: Mapping[str, DatasetVersion]
) -> list[PreparedSet]:
    return [
        PreparedSet(
            preparation=row,
            role=item.role,
            dataset_version=versions[item.role],
            num_examples=item.summary.num_examples,
        )
        for item in output.sets
    ]


def _is_awaited(job: Job) -> bool:
    return DataPreparation.objects.filter(job=job, state__in=ACTIVE_PREPARATION_STATES).exists()
