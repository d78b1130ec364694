"""The Celery task, and what a worker process does at its start and end. Messages carry ids only."""

import logging
from typing import Any
from uuid import UUID

from celery import Task
from celery.signals import worker_ready
from celery.worker import state as worker_state

from config.celery import app
from config.presence import Announcer
from registry.services.jobs import requeue_jobs_of_worker
from workers import lifecycle

logger = logging.getLogger(__name__)


@app.task(name="workers.run_job", bind=True, ignore_result=True)
def run_job(self: "Task[Any, None]", job_id: str) -> None:
    """Makes one attempt at a job; a job that is not waiting (any more) is left alone, so messages may come
    twice.
    """
    worker = str(self.request.hostname)
    lifecycle.run_job(job_id=UUID(job_id), worker=worker, should_stop=is_shutting_down)


def is_shutting_down() -> bool:
    """Whether this worker was asked to end (SIGTERM, SIGINT or SIGQUIT)."""
    # The flags hold an exit status, which may be 0.
    flags: tuple[Any, ...] = (worker_state.should_stop, worker_state.should_terminate)
    return any(flag is not None and flag is not False for flag in flags)


@worker_ready.connect
def on_worker_ready(sender: Any, **_: Any) -> None:
    """Takes back what a killed predecessor of the same name was running, and says that this worker is
    there.
    """
    num_requeued = requeue_jobs_of_worker(worker=sender.hostname)
    if num_requeued:
        logger.warning("%d jobs of a predecessor of %s were put back.", num_requeued, sender.hostname)
    queues = [queue.name for queue in sender.app.amqp.queues.consume_from.values()]
    Announcer(role="worker", name=sender.hostname, queues=queues).start()
