"""The one place where a job's state changes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from registry.choices import JOB_TRANSITIONS, JobEventType
from registry.errors import IllegalTransition
from registry.models import Job, JobAttempt, JobEvent
from registry.services.actors import Actor
from registry.services.audit import record_audit
from registry.services.jobs.records import JobEventRecord, storable_json, storable_message, storable_text


def change_job_state(
    *,
    job_id: UUID,
    from_state: str,
    to_state: str,
    actor: Actor,
    message: str,
    claim: UUID | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Job | None:
    """Moves a job from one state to another if it still is in the first (and under `claim`, when one is
    given).

    Call it inside a transaction: the audit row and the event belong to the change.

    Returns:
        The job as it is now, or None when another change came first.

    Raises:
        IllegalTransition: the table of transitions does not know this change.
    """
    if to_state not in JOB_TRANSITIONS[from_state]:
        raise IllegalTransition(
            "illegal-transition",
            object_name=f"job {job_id}",
            from_state=str(from_state),
            to_state=str(to_state),
        )
    rows = Job.objects.filter(pk=job_id, state=from_state)
    if claim is not None:
        rows = rows.filter(claim=claim)
    if not rows.update(state=to_state, message=storable_message(message), **(columns or {})):
        return None
    job = Job.objects.get(pk=job_id)
    record_audit(
        actor=actor,
        action=f"job.{to_state}",
        target=job,
        before={"state": str(from_state)},
        after={"state": str(to_state), "attempt": job.attempt},
        reason=storable_text(message),
    )
    append_events(
        job=job, events=[JobEventRecord(at=timezone.now(), type=JobEventType.STATE, message=message)]
    )
    return job


def append_events(*, job: Job, events: Sequence[JobEventRecord]) -> None:
    """Stores events under the next sequence numbers; the raised counter is the lock that orders two
    writers.
    """
    Job.objects.filter(pk=job.pk).update(next_event_sequence=F("next_event_sequence") + len(events))
    job.refresh_from_db(fields=["next_event_sequence"])
    first = job.next_event_sequence - len(events)
    JobEvent.objects.bulk_create(
        [
            JobEvent(
                job=job,
                sequence=first + index,
                attempt=job.attempt,
                at=event.at,
                type=event.type,
                level=event.level,
                message=storable_text(event.message),
                fraction=event.fraction,
                step=event.step,
                values=storable_json(event.values),
            )
            for index, event in enumerate(events)
        ]
    )


def close_attempt(
    *, job: Job, claim: UUID, outcome: str, now: datetime, failure: Mapping[str, Any] | None = None
) -> None:
    """Writes down how an attempt ended: succeeded, failed, lost, cancelled or released."""
    JobAttempt.objects.filter(job=job, claim=claim, finished_at=None).update(
        finished_at=now,
        outcome=outcome,
        failure_class="" if failure is None else failure["failure_class"],
        failure=failure,
    )


def count_spent_attempts(job: Job) -> int:
    """Counts the attempts that failed or were lost; a released one costs nothing."""
    return JobAttempt.objects.filter(job=job, outcome__in=("failed", "lost")).count()


def end_columns(now: datetime) -> dict[str, Any]:
    """Columns of a job that no attempt owns any more."""
    return {"claim": None, "finished_at": now}


def requeue_columns(now: datetime) -> dict[str, Any]:
    """Columns of a job that waits for its next attempt."""
    return {"claim": None, "worker": "", "heartbeat_at": None, "enqueued_at": now, "fraction": 0.0}
