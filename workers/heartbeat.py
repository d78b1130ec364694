"""Signs of life while the worker itself is busy and no child is there to be watched."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connection

from registry.services.jobs import ClaimedJob, record_heartbeat

logger = logging.getLogger(__name__)


@contextmanager
def heartbeats_of(claim: ClaimedJob, *, every_seconds: float) -> Iterator[None]:
    """Records heartbeats of an attempt from a thread, for as long as the block takes.

    Linking and hashing the files of a large model takes minutes; without a heartbeat the job would be given
    away. A heartbeat that fails is left out: a lost claim is noticed by the next change that needs it.
    """
    stopped = threading.Event()
    thread = threading.Thread(
        target=_beat, args=(claim, every_seconds, stopped), name="heartbeat", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _beat(claim: ClaimedJob, every_seconds: float, stopped: threading.Event) -> None:
    try:
        while not stopped.wait(every_seconds):
            try:
                record_heartbeat(claim=claim)
            except DatabaseError:
                logger.warning("A heartbeat of job %s was left out.", claim.job_id, exc_info=True)
                connection.close()
    finally:
        connection.close()
