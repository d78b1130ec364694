"""The way of an adapter, as a state machine that is derived only from what the database holds (DESIGN section
4).

`advance_run` looks where a run stands, does what can be done now, and stops where a job must come first. It
may be called at any time, by anybody, twice at once, after any crash: a job with the same content is looked
up and not repeated, and every change is a compare-and-set under a row lock. Nothing is kept in memory between
two calls.
"""

import logging
import uuid
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from django.db import DatabaseError, transaction

from evaluation.choices import FINAL_RUN_STATES, RunState, RunSubject
from evaluation.errors import GateError, ReportError
from evaluation.models import EvaluationRun
from evaluation.selectors.runs import (
    ACTIVE_RUN_STATES,
    list_run_ids_of_job,
    list_unfinished_run_ids,
    list_waiting_candidate_ids,
)
from evaluation.services.baselines import ensure_baseline
from evaluation.services.decisions import decide_run
from evaluation.services.job_requests import JobRequest, request_check, request_evaluation, request_merge
from evaluation.services.reports import load_report, store_report
from evaluation.services.run_states import cancel_run, fail_run, lock_run, move_run
from evaluation.services.step_results import has_passed_check, take_over_check, take_over_merge
from registry.choices import ACTIVE_JOB_STATES, FailureClass, JobKind, JobState, VersionState
from registry.errors import AssayError, IllegalTransition
from registry.models import Job
from registry.services.actors import SYSTEM
from registry.services.jobs import enqueue_job

logger = logging.getLogger(__name__)

MAX_STEPS_PER_CALL: Final = 16
"""More than a run can take from end to end; a bound against a loop that makes no progress."""


class Step(StrEnum):
    """What a run needs next."""

    REFUSE = "refuse"
    CHECK = "check"
    FIND_BASELINE = "find_baseline"
    MERGE = "merge"
    GIVE_UP = "give_up"
    EVALUATE = "evaluate"
    DECIDE = "decide"
    WAIT = "wait"


def next_step(run: EvaluationRun) -> Step:
    """What the run needs next; a function of the rows alone.

    `WAIT`: nothing, because it has come to its end or another run (the baseline) must come first.
    """
    if run.state not in ACTIVE_RUN_STATES:
        is_undecided = run.state == RunState.SCORED and run.subject == RunSubject.CANDIDATE
        return Step.DECIDE if is_undecided else Step.WAIT
    version = run.version
    if version is None:
        return Step.EVALUATE
    if version.state == VersionState.INVALID:
        return Step.REFUSE
    if not has_passed_check(version, run.form):
        return Step.CHECK
    if run.baseline is None:
        return Step.FIND_BASELINE
    if version.merged_artifact_id is None:
        return Step.MERGE
    if run.baseline.state in (RunState.FAILED, RunState.CANCELLED):
        return Step.GIVE_UP
    return Step.EVALUATE if run.baseline.report_artifact_id is not None else Step.WAIT


def advance_run(*, run_id: uuid.UUID) -> None:
    """Takes a run as far as it can go now, and then the candidates that waited for it. An unknown id is
    nothing.
    """
    run = _advance_alone(run_id)
    if run is None or run.subject != RunSubject.BASELINE:
        return
    if run.state in FINAL_RUN_STATES or run.state == RunState.SCORED:
        for candidate_id in list_waiting_candidate_ids(run.pk):
            _advance_alone(candidate_id)


def advance_all() -> None:
    """Takes every unfinished run as far as it can go; what one run raises is logged and does not stop the
    others.
    """
    for run_id in list_unfinished_run_ids():
        try:
            advance_run(run_id=run_id)
        except (AssayError, DatabaseError, OSError):
            logger.exception("run %s could not be advanced; it is tried again", run_id)


def on_job_finished(*, job_id: uuid.UUID) -> None:
    """Takes the runs that waited for a job further. A job that no run waits for is nothing."""
    for run_id in list_run_ids_of_job(job_id):
        advance_run(run_id=run_id)


def _advance_alone(run_id: uuid.UUID) -> EvaluationRun | None:
    run = _load(run_id)
    for _ in range(MAX_STEPS_PER_CALL):
        if run is None or not _take_step(run):
            return run
        run = _load(run_id)
    logger.error("run %s made %d steps in one call; it is taken up again later", run_id, MAX_STEPS_PER_CALL)
    return run


def _load(run_id: uuid.UUID) -> EvaluationRun | None:
    related = (
        "version__adapter",
        "version__base_model",
        "base_model",
        "suite_version__suite",
        "policy",
        "baseline",
        "job",
    )
    return EvaluationRun.objects.select_related(*related).filter(pk=run_id).first()


def _take_step(run: EvaluationRun) -> bool:
    """Does the next step; True when something changed, so that another look is worth it."""
    step = next_step(run)
    if step is Step.WAIT:
        return False
    try:
        return _HANDLERS[step](run)
    except IllegalTransition:
        # Somebody else made the same step first: the rows say where the run stands now.
        logger.info("run %s was advanced by another process at step %s", run.pk, step)
        return True


def _refuse(run: EvaluationRun) -> bool:
    version = run.version
    failure = (version.failure if version else None) or {
        "failure_class": FailureClass.USER,
        "code": "adapter-invalid",
        "message": f"{version} was found invalid.",
        "details": [],
    }
    return _fail(run, failure)


def _check(run: EvaluationRun) -> bool:
    version = run.version
    if version is None:
        raise ValueError(f"run {run.pk} has no version")
    return _work_on(run, request_check(version, run.form), take_over_check)


def _find_baseline(run: EvaluationRun) -> bool:
    baseline = ensure_baseline(base_model=run.base_model, suite_version=run.suite_version, actor=SYSTEM)
    updated = EvaluationRun.objects.filter(pk=run.pk, baseline__isnull=True, state__in=ACTIVE_RUN_STATES)
    updated.update(baseline=baseline)
    _advance_alone(baseline.pk)
    return True


def _merge(run: EvaluationRun) -> bool:
    version = run.version
    if version is None:
        raise ValueError(f"run {run.pk} has no version")
    return _work_on(run, request_merge(version), take_over_merge)


def _give_up(run: EvaluationRun) -> bool:
    baseline = run.baseline
    cause = (baseline.failure or {}) if baseline else {}
    reason = cause.get("message") or "it was cancelled"
    failure_class = cause.get("failure_class", FailureClass.INFRASTRUCTURE)
    if failure_class == FailureClass.USER:
        # Whatever is wrong with the baseline is not the adapter's fault.
        failure_class = FailureClass.INTERNAL
    return _fail(
        run,
        {
            "failure_class": failure_class,
            "code": "baseline-failed",
            "message": f"The baseline run on {run.suite_version} failed: {reason}. "
            "Retrying the submission retries it.",
            "details": cause.get("details", []),
        },
    )


def _evaluate(run: EvaluationRun) -> bool:
    return _work_on(run, request_evaluation(run), _take_over_report)


def _take_over_report(run: EvaluationRun, job: Job) -> None:
    try:
        report = load_report(job=job, run=run)
    except (ReportError, AssayError) as error:
        _fail(
            run, _internal_failure("report-unreadable", f"The report of job {job.pk} cannot be read: {error}")
        )
        return
    store_report(run=run, report=report, actor=SYSTEM)


def _decide(run: EvaluationRun) -> bool:
    try:
        decide_run(run_id=run.pk, actor=SYSTEM)
    except GateError as error:
        return _fail(run, _internal_failure("gate-failed", f"The rules could not be applied: {error}"))
    return True


def _work_on(
    run: EvaluationRun, request: JobRequest, take_over: Callable[[EvaluationRun, Job], None]
) -> bool:
    """Sees to the job of a step: makes it, waits for it, or takes its result over."""
    job = _attach_job(run, request)
    if job is None:
        return True
    if job.state in ACTIVE_JOB_STATES:
        return False
    if job.state == JobState.SUCCEEDED:
        take_over(run, job)
    elif job.state == JobState.FAILED:
        _fail_with_job(run, job)
    else:
        with transaction.atomic():
            cancel_run(run=lock_run(run), actor=SYSTEM, reason=f"Its {job.kind} job was cancelled.")
    return True


def _attach_job(run: EvaluationRun, request: JobRequest) -> Job | None:
    """The job of this step; None when the run has meanwhile come to its end.

    The job that a run points at is the one of its present step when the kinds agree: a run takes each step
    once, and a retry clears the pointer. So a failed job is seen as failed and is not made anew.
    """
    if run.job is not None and run.job.kind == request.kind:
        return run.job
    with transaction.atomic():
        locked = lock_run(run)
        if locked.state not in ACTIVE_RUN_STATES:
            return None
        if locked.job is not None and locked.job.kind == request.kind:
            return locked.job
        job = enqueue_job(
            kind=request.kind,
            inputs=request.inputs,
            config=request.config,
            code_version=request.code_version,
            subject=request.subject,
            actor=SYSTEM,
        )
        EvaluationRun.objects.filter(pk=run.pk).update(job=job)
        if locked.state == RunState.PENDING:
            move_run(run=locked, to_state=RunState.RUNNING, actor=SYSTEM)
    return job


def _fail(
    run: EvaluationRun, failure: Mapping[str, object], version_state: str = VersionState.FAILED
) -> bool:
    with transaction.atomic():
        fail_run(run=lock_run(run), failure=failure, actor=SYSTEM, version_state=version_state)
    return True


def _fail_with_job(run: EvaluationRun, job: Job) -> None:
    failure = job.failure or _internal_failure("job-failed", f"The {job.kind} job {job.pk} failed.")
    is_adapter_at_fault = failure.get("failure_class") == FailureClass.USER and job.kind in (
        JobKind.CHECK,
        JobKind.MERGE,
    )
    _fail(run, failure, VersionState.INVALID if is_adapter_at_fault else VersionState.FAILED)


def _internal_failure(code: str, message: str) -> dict[str, object]:
    return {"failure_class": FailureClass.INTERNAL, "code": code, "message": message, "details": []}


_HANDLERS: Final[Mapping[Step, Callable[[EvaluationRun], bool]]] = {
    Step.REFUSE: _refuse,
    Step.CHECK: _check,
    Step.FIND_BASELINE: _find_baseline,
    Step.MERGE: _merge,
    Step.GIVE_UP: _give_up,
    Step.EVALUATE: _evaluate,
    Step.DECIDE: _decide,
}
