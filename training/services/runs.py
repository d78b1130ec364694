"""Training runs: begins and cancels them, and lets them follow their job.

A run's state, curves, findings and result are copied from its job whenever somebody looks; nothing is kept in
memory in between, and looking twice changes nothing.
"""

import logging
import uuid
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from registry.choices import JobKind, TokenScope
from registry.errors import AssayError, IllegalTransition
from registry.models import Job
from registry.services.actors import SYSTEM, Actor
from registry.services.audit import record_audit
from registry.services.jobs import enqueue_job, request_cancel
from training.choices import ACTIVE_TRAINING_STATES, TRAINING_TRANSITIONS, TrainingPurpose, TrainingRunState
from training.engine.lint.findings import LintReport
from training.errors import TrainingConflict, TrainingInvalid
from training.models import TrainingRun
from training.selectors.runs import (
    VERDICT_DOCUMENTS,
    get_training_run,
    list_active_run_ids,
    list_known_overfits,
    list_run_ids_of_job,
)
from training.services.code_versions import TRAIN
from training.services.failure_rows import name_handbook_rows
from training.services.following import StateRules, change_state, copy_job_state, make_failure
from training.services.incidents import note_failed_run
from training.services.run_lint import judge_run, list_lint_faults
from training.services.run_reports import copy_reports
from training.services.run_requests import RunInputs, TrainingRequest, job_inputs, require_valid

__all__ = [
    "TrainingRequest",
    "begin_run",
    "cancel_training_run",
    "create_training_run",
    "follow_job",
    "on_job_finished",
    "reconcile_all",
]

logger = logging.getLogger(__name__)

_RULES = StateRules(noun="Training run", action="training", transitions=TRAINING_TRANSITIONS)


def create_training_run(*, request: TrainingRequest, actor: Actor) -> TrainingRun:
    """Begins a training run. The same data, base and configuration again is a look-up of the earlier job's
    result.

    Raises:
        ScopeError: the actor may not submit.
        TrainingInvalid: with every fault at once (code `training-run-invalid`), or with every error that the
            rules found (`training-lint-failed`).
    """
    actor.require(TokenScope.SUBMIT)
    inputs = require_valid(request)
    return begin_run(inputs=inputs, request=request, actor=actor, parent=inputs.parent)


def begin_run(
    *,
    inputs: RunInputs,
    request: TrainingRequest,
    actor: Actor,
    parent: TrainingRun | None = None,
    remedy: str = "",
) -> TrainingRun:
    """Begins a run of checked inputs.

    Args:
        inputs: As `require_valid` gives them.
        request: For name, purpose, note and whether errors of the rules are accepted.
        actor: The caller has checked that it may submit.
        parent: The run that this one varies, or None.
        remedy: How it varies it; "" without a parent.

    Raises:
        TrainingInvalid: the rules found errors (`training-lint-failed`).
    """
    report = judge_run(
        config=inputs.given,
        base_model=inputs.base_model,
        datasets=inputs.datasets,
        has_held_out=inputs.holdout is not None,
    )
    faults = list_lint_faults(report)
    if faults and not request.allow_lint_errors:
        raise TrainingInvalid("training-lint-failed", faults=faults)
    config = inputs.config.to_json()
    with transaction.atomic():
        job = enqueue_job(
            kind=JobKind.TRAIN,
            inputs=job_inputs(inputs),
            config={**config, "base_model_name": inputs.base_model.name, "purpose": request.purpose},
            code_version=TRAIN,
            subject=f"{request.name} on {inputs.base_model}",
            hints={"known_overfits": list_known_overfits(inputs.base_model)},
            actor=actor,
        )
        run = TrainingRun.objects.create(
            name=request.name,
            base_model=inputs.base_model,
            holdout=inputs.holdout,
            config=config,
            purpose=request.purpose,
            parent=parent,
            remedy=remedy,
            note=request.note,
            lint={**report.to_json(), "is_overridden": bool(faults)},
            job=job,
            created_by=actor.user,
        )
        run.datasets.set(inputs.datasets)
        _record_beginning(run, inputs, report, actor)
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


def _record_beginning(run: TrainingRun, inputs: RunInputs, report: LintReport, actor: Actor) -> None:
    after: dict[str, Any] = {
        "name": run.name,
        "purpose": str(run.purpose),
        "datasets": [str(item) for item in inputs.datasets],
        "job": str(run.job_id),
    }
    if run.parent_id is not None:
        after |= {"parent": str(run.parent_id), "remedy": run.remedy}
    record_audit(actor=actor, action="training.create", target=run, after=after)
    if report.has_errors:
        codes = [fault.code for fault in list_lint_faults(report)]
        record_audit(actor=actor, action="training.allow_lint_errors", target=run, after={"codes": codes})


def _is_awaited(job: Job) -> bool:
    return TrainingRun.objects.filter(job=job, state__in=ACTIVE_TRAINING_STATES).exists()


def _copy_job(run: TrainingRun, job: Job | None) -> None:
    if job is not None:
        copy_reports(run, job)
    copy_job_state(run, job, rules=_RULES, on_success=_take_over)
    if run.state == TrainingRunState.FAILED:
        name_handbook_rows(run)
        note_failed_run(run=run)


def _take_over(run: TrainingRun, job: Job) -> None:
    failure = _find_gap(run, job)
    if failure is not None:
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


def _find_gap(run: TrainingRun, job: Job) -> dict[str, Any] | None:
    """What a succeeded job left out, as a failure of ours; None when all is there."""
    needed = VERDICT_DOCUMENTS.get(run.purpose)
    if needed is not None and not run.documents.filter(name=needed, passed__isnull=False).exists():
        return make_failure(f"{needed}-missing", f"Job {job.pk} succeeded without its verdict ({needed}).")
    if run.purpose == TrainingPurpose.TRAINING and job.output_artifact_id is None:
        return make_failure("adapter-missing", f"Job {job.pk} succeeded without an adapter.")
    return None
