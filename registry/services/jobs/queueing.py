"""Putting jobs into their queue, and taking them out again."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from amqp.exceptions import ChannelError
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from config.celery import app
from registry.artifacts.digests import digest_json
from registry.choices import ACTIVE_JOB_STATES, QUEUE_OF_KIND, JobQueue, JobState, TokenScope
from registry.errors import NotFoundError, ScopeError
from registry.models import Job
from registry.services.actors import Actor
from registry.services.audit import record_audit
from registry.services.jobs.transitions import change_job_state, end_columns

RUN_JOB_TASK = "workers.run_job"
RESEND_AFTER_SECONDS = 30.0
"""How long a job may wait before its message is suspected to be lost."""

logger = logging.getLogger(__name__)


def compute_cache_key(
    *, kind: str, code_version: str, inputs: Mapping[str, Any], config: Mapping[str, Any]
) -> str:
    """Returns the digest that names a step's result: equal inputs, configuration and code give equal
    results.
    """
    return digest_json({"kind": str(kind), "code_version": code_version, "inputs": inputs, "config": config})


@transaction.atomic
def enqueue_job(
    *,
    kind: str,
    inputs: Mapping[str, Any],
    config: Mapping[str, Any],
    code_version: str,
    subject: str,
    actor: Actor,
    hints: Mapping[str, Any] | None = None,
    max_attempts: int | None = None,
    time_limit_seconds: int | None = None,
) -> Job:
    """Returns the job that does this work: one that succeeded before, one that is under way, or a new one.

    The message to the workers leaves after the commit; when the broker is down the scheduler sends it
    later. The caller has checked that the actor may ask for the work.

    Args:
        kind: A `JobKind`.
        inputs: As in `registry.models.Job`.
        config: Passed to the job process as it stands; part of the cache key.
        code_version: Names the code whose result this is, such as "merge@1".
        subject: For people: what the job is about.
        actor: Who asked for it.
        hints: Passed to the job process, but no part of the cache key: only what spares work and changes no
            result. A job that is there already keeps its own. None gives none.
        max_attempts: Infrastructure failures end the job after this many attempts; None takes the setting.
        time_limit_seconds: One attempt is stopped after this long; None takes the setting.
    """
    cache_key = compute_cache_key(kind=kind, code_version=code_version, inputs=inputs, config=config)
    existing = _find_reusable(cache_key)
    if existing is not None:
        return existing
    try:
        with transaction.atomic():
            job = Job.objects.create(
                kind=kind,
                queue=QUEUE_OF_KIND[kind],
                cache_key=cache_key,
                code_version=code_version,
                inputs=inputs,
                config=config,
                hints=hints or {},
                subject=subject[:160],
                max_attempts=max_attempts or settings.JOB_MAX_ATTEMPTS,
                time_limit_seconds=time_limit_seconds or settings.JOB_TIME_LIMIT_SECONDS,
                enqueued_at=timezone.now(),
                created_by=actor.user,
            )
    except IntegrityError:
        # Another request made the same job between our look and our insert.
        return Job.objects.get(cache_key=cache_key, state__in=ACTIVE_JOB_STATES)
    record_audit(actor=actor, action="job.enqueue", target=job, after={"kind": str(kind), "state": job.state})
    transaction.on_commit(lambda: send_job(job_id=job.pk, queue=job.queue))
    return job


def send_job(*, job_id: UUID, queue: str) -> bool:
    """Sends the job's id to its queue; False when the broker cannot be reached."""
    try:
        app.send_task(RUN_JOB_TASK, args=[str(job_id)], queue=str(queue), retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("Job %s was not sent to the broker (%s); the scheduler will try again.", job_id, error)
        return False
    return True


@transaction.atomic
def request_cancel(*, job: Job, actor: Actor) -> Job:
    """Cancels a waiting job at once, and asks the worker of a running one to stop it. An ended job stays as
    it is.

    Raises:
        ScopeError: the actor may not submit.
    """
    actor.require(TokenScope.SUBMIT)
    cancelled = change_job_state(
        job_id=job.pk,
        from_state=JobState.QUEUED,
        to_state=JobState.CANCELLED,
        actor=actor,
        message="Cancelled before it began.",
        columns={**end_columns(timezone.now()), "is_cancel_requested": True},
    )
    if cancelled is not None:
        return cancelled
    is_asked = Job.objects.filter(pk=job.pk, state=JobState.RUNNING, is_cancel_requested=False).update(
        is_cancel_requested=True
    )
    if is_asked:
        record_audit(
            actor=actor,
            action="job.request_cancel",
            target=job,
            before={"is_cancel_requested": False},
            after={"is_cancel_requested": True},
        )
    job.refresh_from_db()
    return job


def cancel_job(*, job_id: UUID, actor: Actor) -> Job:
    """Cancels a job by its id, for operators.

    Raises:
        NotFoundError: there is no such job.
        ScopeError: the actor may not submit, or is limited to named adapters: a job may serve several of
            them.
    """
    actor.require(TokenScope.SUBMIT)
    if actor.adapter_names is not None:
        raise ScopeError(
            "adapter-out-of-scope",
            "The token is limited to named adapters and a job may serve others too; cancel the submission.",
        )
    job = Job.objects.filter(pk=job_id).first()
    if job is None:
        raise NotFoundError("job-not-found", job_id=str(job_id))
    return request_cancel(job=job, actor=actor)


def resend_waiting_jobs(*, now: datetime, min_wait_seconds: float = RESEND_AFTER_SECONDS) -> int:
    """Sends the ids of jobs that have waited long while their queue holds fewer messages than jobs wait.

    A message is lost when the broker was down at the commit, or lost its data. A queue that is merely long
    holds a message for every waiting job, and nothing is added to it.

    Args:
        now: The present.
        min_wait_seconds: Jobs that have waited less are left alone.

    Returns:
        How many messages were sent.
    """
    num_sent = 0
    for queue in JobQueue.values:
        waiting = Job.objects.filter(state=JobState.QUEUED, queue=queue)
        late = list(waiting.filter(enqueued_at__lt=now - timedelta(seconds=min_wait_seconds)))
        if not late or _count_messages(queue) >= waiting.count():
            continue
        for job in reversed(late):
            if send_job(job_id=job.pk, queue=queue):
                Job.objects.filter(pk=job.pk, state=JobState.QUEUED).update(enqueued_at=now)
                num_sent += 1
    return num_sent


def _count_messages(queue: str) -> int:
    """Counts the messages that wait in a queue of the broker, 0 when it cannot be asked."""
    try:
        with app.connection_for_read() as connection:
            channel: Any = connection.default_channel  # kombu's types know only what all transports share
            return int(channel.queue_declare(queue=queue, passive=True).message_count)
    except (ChannelError, OperationalError, OSError):
        # Redis has no empty lists, so an empty queue "does not exist".
        return 0


def _find_reusable(cache_key: str) -> Job | None:
    same = Job.objects.filter(cache_key=cache_key)
    active = same.filter(state__in=ACTIVE_JOB_STATES).first()
    if active is None:
        return same.filter(state=JobState.SUCCEEDED).order_by("-finished_at").first()
    if active.is_cancel_requested:
        # Somebody wants the result after all.
        Job.objects.filter(pk=active.pk).update(is_cancel_requested=False)
        active.is_cancel_requested = False
    return active
