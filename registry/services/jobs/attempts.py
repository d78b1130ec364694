"""The life of one attempt at a job, as its worker reports it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from registry.choices import FailureClass, JobState
from registry.models import Job, JobAttempt
from registry.services.actors import SYSTEM
from registry.services.jobs.queueing import send_job
from registry.services.jobs.records import (
    ClaimedJob,
    ClaimLost,
    HeartbeatReply,
    JobEventRecord,
    storable_json,
    storable_message,
)
from registry.services.jobs.transitions import (
    append_events,
    change_job_state,
    close_attempt,
    count_spent_attempts,
    end_columns,
    requeue_columns,
)


@transaction.atomic
def claim_job(*, job_id: UUID, worker: str) -> ClaimedJob | None:
    """Gives a queued job to a worker under a new claim.

    Returns:
        The attempt, or None when the job is not queued (any more): running elsewhere, ended or unknown.
    """
    now = timezone.now()
    claim = uuid4()
    job = change_job_state(
        job_id=job_id,
        from_state=JobState.QUEUED,
        to_state=JobState.RUNNING,
        actor=SYSTEM,
        message=f"Taken by {worker}.",
        columns={
            "claim": claim,
            "worker": worker,
            "attempt": F("attempt") + 1,
            "heartbeat_at": now,
            "started_at": now,
            "finished_at": None,
            "fraction": 0.0,
            "failure": None,
        },
    )
    if job is None:
        return None
    JobAttempt.objects.create(job=job, number=job.attempt, claim=claim, worker=worker, started_at=now)
    return ClaimedJob(
        job_id=job.pk,
        claim=claim,
        attempt=job.attempt,
        worker=worker,
        kind=job.kind,
        code_version=job.code_version,
        inputs=job.inputs,
        config=job.config,
        time_limit_seconds=job.time_limit_seconds,
        subject=job.subject,
        hints=job.hints,
    )


def record_workdir(*, claim: ClaimedJob, workdir: str) -> None:
    """Notes where the attempt's files are."""
    JobAttempt.objects.filter(job_id=claim.job_id, claim=claim.claim).update(workdir=workdir)


def record_heartbeat(
    *, claim: ClaimedJob, fraction: float | None = None, message: str | None = None
) -> HeartbeatReply:
    """Notes that the attempt is alive and how far it is.

    Args:
        claim: The attempt.
        fraction: Share of the work done, 0-1; None leaves it as it is.
        message: What it is doing; None leaves it as it is.
    """
    columns: dict[str, Any] = {"heartbeat_at": timezone.now()}
    if fraction is not None:
        columns["fraction"] = min(max(fraction, 0.0), 1.0)
    if message is not None:
        columns["message"] = storable_message(message)
    if not _owned(claim).update(**columns):
        return HeartbeatReply(is_owner=False, is_cancel_requested=False)
    flags = list(_owned(claim).values_list("is_cancel_requested", flat=True))
    return HeartbeatReply(is_owner=bool(flags), is_cancel_requested=any(flags))


@transaction.atomic
def record_events(*, claim: ClaimedJob, events: Sequence[JobEventRecord]) -> None:
    """Stores events of the attempt in their order.

    Raises:
        ClaimLost: the attempt no longer owns the job; nothing is stored.
    """
    if not events:
        return
    job = _owned(claim).select_for_update().first()
    if job is None:
        raise _claim_lost(claim)
    append_events(job=job, events=events)


@transaction.atomic
def complete_job(*, claim: ClaimedJob, values: Mapping[str, Any], output_artifact: str | None) -> Job:
    """Ends the job with its result.

    Args:
        claim: The attempt that made the result.
        values: The summary of the result.
        output_artifact: Digest of the stored output, None when the kind of job has none.

    Raises:
        ClaimLost: the attempt no longer owns the job.
    """
    now = timezone.now()
    columns = {
        **end_columns(now),
        "values": storable_json(values),
        "output_artifact_id": output_artifact,
        "fraction": 1.0,
        "failure": None,
        "is_cancel_requested": False,
    }
    job = _change_claimed(claim, JobState.SUCCEEDED, "Succeeded.", columns)
    close_attempt(job=job, claim=claim.claim, outcome="succeeded", now=now)
    return job


@transaction.atomic
def fail_job(
    *,
    claim: ClaimedJob,
    failure_class: str,
    code: str,
    message: str,
    details: Sequence[Mapping[str, Any]] = (),
    outcome: Literal["failed", "lost"] = "failed",
) -> Job:
    """Ends the attempt with a failure; an infrastructure failure with attempts left puts the job back.

    The first retry is sent at once, later ones by the scheduler's next look, so that a lasting fault does
    not spin.

    Args:
        claim: The attempt.
        failure_class: Who is responsible (`FailureClass`).
        code: Stable kebab-case name of the failure.
        message: For people.
        details: Single faults: objects with code, message, where, remedy.
        outcome: How the attempt is written down.

    Returns:
        The job, `failed` or `queued` again.

    Raises:
        ClaimLost: the attempt no longer owns the job.
    """
    now = timezone.now()
    failure = storable_json(
        {"failure_class": str(failure_class), "code": code, "message": message, "details": list(details)}
    )
    job = _owned(claim).select_for_update().first()
    if job is None:
        raise _claim_lost(claim)
    close_attempt(job=job, claim=claim.claim, outcome=outcome, now=now, failure=failure)
    num_spent = count_spent_attempts(job)
    if job.is_cancel_requested:
        return _change_claimed(
            claim, JobState.CANCELLED, "Cancelled.", {**end_columns(now), "failure": failure}
        )
    if failure_class == FailureClass.INFRASTRUCTURE and num_spent < job.max_attempts:
        text = f"Attempt {claim.attempt} failed ({code}); it will be tried again: {message}"
        job = _change_claimed(claim, JobState.QUEUED, text, {**requeue_columns(now), "failure": failure})
        if num_spent == 1:
            transaction.on_commit(lambda: send_job(job_id=job.pk, queue=job.queue))
        return job
    return _change_claimed(claim, JobState.FAILED, message, {**end_columns(now), "failure": failure})


@transaction.atomic
def cancel_claimed_job(*, claim: ClaimedJob) -> Job:
    """Ends the job as cancelled, after its process was stopped.

    Raises:
        ClaimLost: the attempt no longer owns the job.
    """
    now = timezone.now()
    job = _change_claimed(claim, JobState.CANCELLED, "Cancelled.", end_columns(now))
    close_attempt(job=job, claim=claim.claim, outcome="cancelled", now=now)
    return job


@transaction.atomic
def release_job(*, claim: ClaimedJob) -> Job:
    """Puts the job back because its worker is shutting down; the attempt does not count as a failure.

    Raises:
        ClaimLost: the attempt no longer owns the job.
    """
    now = timezone.now()
    job = _change_claimed(
        claim, JobState.QUEUED, f"Put back: {claim.worker} is shutting down.", requeue_columns(now)
    )
    close_attempt(job=job, claim=claim.claim, outcome="released", now=now)
    transaction.on_commit(lambda: send_job(job_id=job.pk, queue=job.queue))
    return job


def _owned(claim: ClaimedJob) -> Any:
    return Job.objects.filter(pk=claim.job_id, claim=claim.claim, state=JobState.RUNNING)


def _claim_lost(claim: ClaimedJob) -> ClaimLost:
    return ClaimLost("job-claim-lost", job_id=str(claim.job_id), attempt=claim.attempt)


def _change_claimed(claim: ClaimedJob, to_state: str, message: str, columns: Mapping[str, Any]) -> Job:
    job = change_job_state(
        job_id=claim.job_id,
        from_state=JobState.RUNNING,
        to_state=to_state,
        actor=SYSTEM,
        message=message,
        claim=claim.claim,
        columns=columns,
    )
    if job is None:
        raise _claim_lost(claim)
    return job
