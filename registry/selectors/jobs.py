"""Reading jobs, their attempts and their events."""

from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from registry.choices import ACTIVE_JOB_STATES, JobEventType
from registry.errors import NotFoundError
from registry.models import Job, JobAttempt, JobEvent


def get_job(job_id: UUID | str) -> Job:
    """Returns the job of that id.

    Raises:
        NotFoundError: there is none.
    """
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFoundError("job-not-found", job_id=str(job_id))
    return job


def list_jobs(*, kind: str | None = None, state: str | None = None) -> QuerySet[Job]:
    """Lists jobs, newest first; None does not filter."""
    jobs = Job.objects.all()
    if kind is not None:
        jobs = jobs.filter(kind=kind)
    if state is not None:
        jobs = jobs.filter(state=state)
    return jobs


def list_active_job_ids() -> list[UUID]:
    """Lists the ids of jobs that wait or run."""
    return list(Job.objects.filter(state__in=ACTIVE_JOB_STATES).values_list("pk", flat=True))


def list_job_events(*, job: Job, after: int = 0, limit: int = 200) -> list[JobEvent]:
    """Lists at most `limit` events with a sequence number above `after`, in their order."""
    return list(JobEvent.objects.filter(job=job, sequence__gt=after).order_by("sequence")[:limit])


def list_latest_job_events(*, job: Job, limit: int) -> list[JobEvent]:
    """Lists the last `limit` events, in their order."""
    return list(JobEvent.objects.filter(job=job).order_by("-sequence")[:limit])[::-1]


def list_job_attempts(*, job: Job) -> QuerySet[JobAttempt]:
    """Lists the attempts at a job, first to last."""
    return JobAttempt.objects.filter(job=job).order_by("number")


def list_reported_events(*, job: Job, after: int = 0) -> list[JobEvent]:
    """Lists what the job's processes measured and reported, with a sequence number above `after`, in order.

    Numbers (`metric`) are those of the latest attempt, which measures the same steps again. Documents
    (`record`) are those of all attempts: an attempt that goes on from a checkpoint does not tell again what
    the one before it told.
    """
    is_wanted = Q(type=JobEventType.RECORD) | Q(
        type=JobEventType.METRIC, attempt=job.attempt, step__isnull=False
    )
    # One query, so that no event can be stored between two looks and be passed over.
    return list(JobEvent.objects.filter(is_wanted, job=job, sequence__gt=after).order_by("sequence"))


def compute_duration_seconds(job: Job, *, now: datetime) -> float | None:
    """Computes how long the latest attempt ran, or has been running; None before the first."""
    if job.started_at is None or (job.finished_at is None and job.claim is None):
        return None
    return max(((job.finished_at or now) - job.started_at).total_seconds(), 0.0)
