"""Triages: begins and cancels them, and lets them follow their job.

A triage's state and items are copied from its job whenever somebody looks; nothing is kept in memory in
between, and looking twice changes nothing.
"""

import dataclasses
import json
import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone

from evaluation.choices import ACTIVE_TRIAGE_STATES, TRIAGE_TRANSITIONS, TriageState
from evaluation.engine.errors import EvaluationError
from evaluation.engine.triage.samples import ParsedSamples, parse_samples
from evaluation.engine.triage.settings import DEFAULT_MAX_TOKENS, TriageConfig
from evaluation.errors import TriageConflict, TriageRefused, registry_faults
from evaluation.models import Triage, TriageItem
from evaluation.selectors.triages import get_triage, list_active_triage_ids, list_triage_ids_of_job
from evaluation.services.code_versions import TRIAGE
from evaluation.services.triage_reports import TriageReport, TriageReportError, load_triage_report
from registry.choices import FailureClass, JobKind, JobState, TokenScope
from registry.errors import AssayError, Fault, IllegalTransition
from registry.models import BaseModel, Job
from registry.selectors.base_models import get_base_model
from registry.services.actors import SYSTEM, Actor
from registry.services.audit import record_audit
from registry.services.jobs import enqueue_job, request_cancel
from registry.services.lookups import look_up
from registry.services.names import find_name_fault

logger = logging.getLogger(__name__)

SAMPLES_FILE: Final = "samples.json"
_BATCH_SIZE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageRequest:
    """What a client asks for.

    Attributes:
        name: For people; need not be unique.
        base_model_name: A registered base model.
        samples: Lines as of `evaluation.engine.triage.samples`, as JSON objects.
        prompts: As of `evaluation.engine.triage.settings`.
        output_schema: JSON Schema of a right answer, or None.
        max_tokens: Limit of generated tokens.
    """

    name: str
    base_model_name: str
    samples: Sequence[Any]
    prompts: Sequence[Any]
    output_schema: Any = None
    max_tokens: Any = DEFAULT_MAX_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    base_model: BaseModel
    config: TriageConfig
    samples: ParsedSamples


def create_triage(*, request: TriageRequest, actor: Actor) -> Triage:
    """Begins a triage. The same samples, prompts and base again are a look-up of the earlier job's result.

    Raises:
        ScopeError: the actor may not evaluate.
        TriageRefused: with every fault at once (code `triage-invalid`).
    """
    actor.require(TokenScope.EVALUATE)
    inputs = _require_valid(request)
    config = inputs.config.to_json()
    with transaction.atomic():
        job = enqueue_job(
            kind=JobKind.TRIAGE,
            inputs={
                "base_model": {"artifact": inputs.base_model.artifact_id},
                "samples": {"inline": {SAMPLES_FILE: {"samples": list(request.samples)}}},
            },
            config=config,
            code_version=TRIAGE,
            subject=f"{request.name} on {inputs.base_model}",
            actor=actor,
        )
        row = Triage.objects.create(
            name=request.name,
            base_model=inputs.base_model,
            config=config,
            num_samples=len(inputs.samples.samples),
            job=job,
            created_by=actor.user,
        )
        record_audit(
            actor=actor,
            action="triage.create",
            target=row,
            after={"name": row.name, "num_samples": row.num_samples, "job": str(job.pk)},
        )
    follow_job(triage_id=row.pk)
    return get_triage(row.pk)


def cancel_triage(*, triage: Triage, actor: Actor) -> Triage:
    """Ends a triage; its job is cancelled unless another triage waits for it too.

    Raises:
        ScopeError: the actor may not evaluate.
        TriageConflict: it has come to its end.
    """
    actor.require(TokenScope.EVALUATE)
    with transaction.atomic():
        locked = Triage.objects.select_for_update().get(pk=triage.pk)
        if locked.state not in ACTIVE_TRIAGE_STATES:
            raise TriageConflict("triage-final", state=locked.state)
        change_state(locked, TriageState.CANCELLED, actor, finished_at=timezone.now())
        if locked.job is not None and not _is_awaited(locked.job):
            # Whoever may end the triage may end the job that exists for it alone.
            scopes = actor.scopes | {TokenScope.SUBMIT}
            request_cancel(job=locked.job, actor=dataclasses.replace(actor, scopes=scopes))
    return get_triage(triage.pk)


def follow_job(*, triage_id: uuid.UUID) -> None:
    """Takes over what the triage's job has done since the last look. An unknown id is nothing."""
    row = Triage.objects.select_related("job").filter(pk=triage_id).first()
    if row is None or row.state not in ACTIVE_TRIAGE_STATES:
        return
    # Reading the report takes time, so it is done before anything is locked.
    report = _read_report(row)
    try:
        with transaction.atomic():
            locked = Triage.objects.select_for_update().get(pk=triage_id)
            if locked.state in ACTIVE_TRIAGE_STATES:
                _copy_job_state(locked, row.job, report)
    except IllegalTransition:
        logger.info("triage %s was updated by another process", triage_id)


def on_job_finished(*, job_id: uuid.UUID) -> None:
    """Updates the triages of a job that came to its end. A job that belongs to none is nothing."""
    for triage_id in list_triage_ids_of_job(job_id):
        follow_job(triage_id=triage_id)


def reconcile_all() -> None:
    """Updates every triage that has not ended; what one raises is logged and does not stop the others."""
    for triage_id in list_active_triage_ids():
        try:
            follow_job(triage_id=triage_id)
        except (AssayError, DatabaseError, OSError):
            logger.exception("triage %s could not be updated; it is tried again", triage_id)


def change_state(triage: Triage, to_state: str, actor: Actor, **columns: Any) -> None:
    """Moves a triage from the state in which it was read to another; call it in a transaction.

    Raises:
        IllegalTransition: the table does not allow it, or the triage is in another state by now.
    """
    from_state = str(triage.state)
    facts: dict[str, Any] = {
        "object_name": f"Triage {triage.pk}",
        "from_state": from_state,
        "to_state": str(to_state),
    }
    if to_state not in TRIAGE_TRANSITIONS[from_state]:
        raise IllegalTransition("illegal-transition", **facts)
    if not Triage.objects.filter(pk=triage.pk, state=from_state).update(state=to_state, **columns):
        raise IllegalTransition("state-changed", **facts)
    triage.state = to_state
    record_audit(
        actor=actor,
        action=f"triage.{to_state}",
        target=triage,
        before={"state": from_state},
        after={"state": str(to_state)},
    )


def _require_valid(request: TriageRequest) -> _Inputs:
    faults: list[Fault] = []
    if (fault := find_name_fault(request.name, where="/name")) is not None:
        faults.append(fault)
    base_model = look_up(faults, "/base_model", lambda: get_base_model(request.base_model_name))
    samples = _read_samples(request.samples, faults)
    config = _read_config(request, faults)
    if faults or base_model is None or samples is None or config is None:
        raise TriageRefused("triage-invalid", faults=faults)
    return _Inputs(base_model=base_model, config=config, samples=samples)


def _read_samples(samples: Sequence[Any], faults: list[Fault]) -> ParsedSamples | None:
    try:
        return parse_samples([json.dumps(item).encode() for item in samples], "/samples")
    except EvaluationError as error:
        faults.extend(registry_faults(error.faults))
    return None


def _read_config(request: TriageRequest, faults: list[Fault]) -> TriageConfig | None:
    document: Mapping[str, Any] = {
        "prompts": list(request.prompts),
        "output_schema": request.output_schema,
        "max_tokens": request.max_tokens,
        "backend": dict(settings.ENGINE_BACKEND),
    }
    try:
        return TriageConfig.from_json(document)
    except EvaluationError as error:
        faults.extend(registry_faults(error.faults))
    return None


def _is_awaited(job: Job) -> bool:
    return Triage.objects.filter(job=job, state__in=ACTIVE_TRIAGE_STATES).exists()


def _read_report(row: Triage) -> TriageReport | TriageReportError | None:
    """The report of a succeeded job, or why it cannot be used; None before its end."""
    if row.job is None or row.job.state != JobState.SUCCEEDED:
        return None
    try:
        return load_triage_report(row.job, num_samples=row.num_samples)
    except TriageReportError as error:
        return error


def _copy_job_state(row: Triage, job: Job | None, report: TriageReport | TriageReportError | None) -> None:
    if job is None:
        failure = _failure("job-missing", "The job does not exist any more.")
        change_state(row, TriageState.FAILED, SYSTEM, failure=failure, finished_at=timezone.now())
        return
    match job.state:
        case JobState.QUEUED | JobState.RUNNING:
            if row.state != job.state:
                change_state(row, job.state, SYSTEM)
        case JobState.SUCCEEDED:
            _take_over(row, job, report)
        case JobState.FAILED:
            failure = job.failure or _failure("job-failed", f"Job {job.pk} failed.")
            change_state(row, TriageState.FAILED, SYSTEM, failure=failure, finished_at=job.finished_at)
        case JobState.CANCELLED:
            change_state(row, TriageState.CANCELLED, SYSTEM, finished_at=job.finished_at)


def _take_over(row: Triage, job: Job, report: TriageReport | TriageReportError | None) -> None:
    if report is None:
        return
    if isinstance(report, TriageReportError):
        failure = _failure("report-unreadable", f"The report of job {job.pk} cannot be read: {report}")
        change_state(row, TriageState.FAILED, SYSTEM, failure=failure, finished_at=job.finished_at)
        return
    change_state(
        row,
        TriageState.SORTED,
        SYSTEM,
        report_id=report.digest,
        summary=dict(report.summary),
        finished_at=job.finished_at,
    )
    TriageItem.objects.bulk_create((_item(row, item) for item in report.items), batch_size=_BATCH_SIZE)


def _item(row: Triage, item: Mapping[str, Any]) -> TriageItem:
    sorting = item["sorting"]
    return TriageItem(
        triage=row,
        position=item["position"],
        sample_id=item["sample_id"],
        outcome=item["outcome"],
        rule_kind=sorting["kind"] or "",
        confidence=sorting["confidence"],
        details=dict(item),
    )


def _failure(code: str, message: str) -> dict[str, Any]:
    return {"failure_class": str(FailureClass.INTERNAL), "code": code, "message": message, "details": []}
