"""Taking jobs back from workers that are gone."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings

from registry.choices import FailureClass, JobState
from registry.models import Job
from registry.services.jobs.attempts import fail_job
from registry.services.jobs.records import ClaimedJob, ClaimLost


def requeue_lapsed_jobs(*, now: datetime) -> int:
    """Takes back the running jobs whose last heartbeat is too old; returns how many.

    A lost worker is an infrastructure failure: the job waits again, or fails when its attempts are spent.
    """
    limit = now - timedelta(seconds=settings.JOB_LAPSED_SECONDS)
    return _take_back(Job.objects.filter(state=JobState.RUNNING, heartbeat_at__lt=limit))


def requeue_jobs_of_worker(*, worker: str) -> int:
    """Takes back the jobs that a worker of this name was running before it was started anew; returns how
    many.

    Only the worker itself may ask for it, at its start and before it takes a job.
    """
    return _take_back(Job.objects.filter(state=JobState.RUNNING, worker=worker))


def _take_back(jobs: Iterable[Job]) -> int:
    num_taken = 0
    for job in jobs:
        if job.claim is None:
            continue
        claim = ClaimedJob(
            job_id=job.pk,
            claim=job.claim,
            attempt=job.attempt,
            worker=job.worker,
            kind=job.kind,
            code_version=job.code_version,
            inputs=job.inputs,
            config=job.config,
            time_limit_seconds=job.time_limit_seconds,
            subject=job.subject,
            hints=job.hints,
        )
        try:
            fail_job(
                claim=claim,
                failure_class=FailureClass.INFRASTRUCTURE,
                code="worker-lost",
                message=f"{job.worker} stopped without a word during attempt {job.attempt}.",
                outcome="lost",
            )
        except ClaimLost:
            # The worker answered between our look and our change.
            continue
        num_taken += 1
    return num_taken
