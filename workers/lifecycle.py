"""The one owner of an attempt's life: claim, lay out, start, watch, store, end.

It is the only place that starts job processes and the only one that decides how an attempt ended. It does
no work of a job itself, holds no transaction while a child runs, and calls the apps only after a final
state.
"""

import functools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections

from evaluation.services import pipeline, triages
from registry.choices import FINAL_JOB_STATES, FailureClass
from registry.errors import AssayError, StoreFull
from registry.services.jobs import (
    ClaimedJob,
    ClaimLost,
    cancel_claimed_job,
    claim_job,
    complete_job,
    fail_job,
    record_events,
    record_heartbeat,
    record_workdir,
    release_job,
)
from training.services import preparations
from training.services import runs as training_runs
from workers import output_diagnosis
from workers.child import ChildProcess
from workers.event_tail import EventBatch, EventTail
from workers.exits import classify_exit, count_oom_kills
from workers.heartbeat import heartbeats_of
from workers.job.events import EVENTS_NAME
from workers.job.result import JobFailure, JobResult
from workers.outputs import OutputsMalformed, drop_outputs, store_output
from workers.workdir import InputsMalformed, WorkFolder, prepare_work_folder, remove_kept_folder

logger = logging.getLogger(__name__)
_T = TypeVar("_T")
DATABASE_PATIENCE_SECONDS = 60.0
"""How long the end of an attempt waits for a database that does not answer."""


class StopReason(StrEnum):
    """Why a child was stopped before it ended by itself."""

    CANCELLED = "cancelled"
    TIME_LIMIT = "time limit"
    SHUTDOWN = "shutdown"
    CLAIM_LOST = "claim lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOutcome:
    """How watching a child ended: it exited by itself, or it was stopped for a reason."""

    returncode: int | None
    stopped_for: StopReason | None = None


def run_job(*, job_id: UUID, worker: str, should_stop: Callable[[], bool]) -> str | None:
    """Makes one attempt at a job, if it is there to be taken.

    Args:
        job_id: The job.
        worker: Stable name of this worker.
        should_stop: Asked at every turn; True puts the job back and ends.

    Returns:
        The job's state after the attempt; None when it was not there to be taken, or was lost on the way.
    """
    claim = claim_job(job_id=job_id, worker=worker)
    if claim is None:
        logger.info("Job %s is not waiting; nothing to do.", job_id)
        return None
    try:
        state = _Attempt(claim=claim, should_stop=should_stop).run()
    except ClaimLost:
        logger.warning("Job %s was given to another attempt; this one is dropped.", job_id)
        return None
    if state in FINAL_JOB_STATES:
        remove_kept_folder(root=Path(settings.WORK_ROOT), job_id=job_id)
        pipeline.on_job_finished(job_id=job_id)
        output_diagnosis.on_job_finished(job_id=job_id)
        triages.on_job_finished(job_id=job_id)
        training_runs.on_job_finished(job_id=job_id)
        preparations.on_job_finished(job_id=job_id)
    return state


class _Attempt:
    """One attempt, from the claim on."""

    def __init__(self, *, claim: ClaimedJob, should_stop: Callable[[], bool]) -> None:
        self._claim = claim
        self._should_stop = should_stop
        self._deadline = time.monotonic() + claim.time_limit_seconds
        self._folder: WorkFolder | None = None

    def run(self) -> str:
        """Does everything and returns the job's state.

        Outputs are either in the store afterwards, or worthless: they never stay to fill the disk.
        """
        try:
            return self._run_classified()
        finally:
            if self._folder is not None:
                drop_outputs(self._folder)

    def _run_classified(self) -> str:
        try:
            return self._run()
        except ClaimLost:
            raise
        except (OSError, StoreFull) as error:
            logger.exception("The machine failed job %s.", self._claim.job_id)
            return self._fail(_machine_failure(error))
        except (InputsMalformed, OutputsMalformed) as error:
            logger.exception("Job %s cannot be laid out.", self._claim.job_id)
            return self._fail(_failure(FailureClass.INTERNAL, error))
        except AssayError as error:
            logger.exception("The store failed job %s.", self._claim.job_id)
            return self._fail(_failure(FailureClass.INFRASTRUCTURE, error))
        except Exception:
            # The one broad handler: a job must never stay "running" because of a fault in this code.
            logger.exception("The worker has a fault; job %s is ended.", self._claim.job_id)
            message = "The worker has a fault; its log holds the details."
            self._fail(JobFailure(failure_class=FailureClass.INTERNAL, code="worker-fault", message=message))
            raise

    def _run(self) -> str:
        with heartbeats_of(self._claim, every_seconds=settings.JOB_HEARTBEAT_SECONDS):
            folder = prepare_work_folder(
                claim=self._claim,
                root=Path(settings.WORK_ROOT),
                num_threads=settings.JOB_NUM_THREADS,
                num_processes=settings.TRAIN_NUM_PROCESSES or None,
            )
        self._folder = folder
        record_workdir(claim=self._claim, workdir=str(folder.path))
        num_oom_kills = count_oom_kills()
        tail = EventTail(folder.path / EVENTS_NAME)
        with ChildProcess(
            workdir=folder.path,
            log_path=folder.child_log,
            project_root=settings.PROJECT_ROOT,
            kept=folder.kept,
        ) as child:
            outcome = self._watch(child, tail)
        if outcome.stopped_for is StopReason.CLAIM_LOST:
            raise ClaimLost("job-claim-lost", job_id=str(self._claim.job_id), attempt=self._claim.attempt)
        for batch in tail.read_rest():
            self._persist(functools.partial(self._store, batch))
        match outcome.stopped_for:
            case StopReason.CANCELLED:
                return self._persist(lambda: cancel_claimed_job(claim=self._claim)).state
            case StopReason.SHUTDOWN:
                return self._persist(lambda: release_job(claim=self._claim)).state
            case StopReason.TIME_LIMIT:
                return self._fail(self._time_limit_failure())
        result = classify_exit(
            returncode=outcome.returncode or 0,
            folder=folder.path,
            num_oom_kills_before=num_oom_kills,
            num_oom_kills_now=count_oom_kills(),
        )
        return self._fail(result.failure) if result.failure is not None else self._complete(result, folder)

    def _watch(self, child: ChildProcess, tail: EventTail) -> WatchOutcome:
        """Waits for the child's end; every turn stores what it said, gives a sign of life and looks for a
        reason to stop.
        """
        while True:
            returncode = child.wait(settings.JOB_HEARTBEAT_SECONDS)
            if returncode is not None:
                return WatchOutcome(returncode=returncode)
            reason = self._report(tail) or self._reason_to_stop()
            if reason is not None:
                logger.info("Job %s is stopped: %s.", self._claim.job_id, reason)
                child.stop()
                return WatchOutcome(returncode=None, stopped_for=reason)

    def _reason_to_stop(self) -> StopReason | None:
        if self._should_stop():
            return StopReason.SHUTDOWN
        return StopReason.TIME_LIMIT if time.monotonic() > self._deadline else None

    def _report(self, tail: EventTail) -> StopReason | None:
        """Stores news and a heartbeat. A database that does not answer is asked again at the next turn."""
        batch = tail.read_new()
        try:
            self._store(batch)
            reply = record_heartbeat(claim=self._claim, fraction=batch.fraction, message=batch.message)
        except ClaimLost:
            return StopReason.CLAIM_LOST
        except (OperationalError, InterfaceError):
            logger.warning(
                "The database did not take a heartbeat of job %s.", self._claim.job_id, exc_info=True
            )
            close_old_connections()
            return None
        if not reply.is_owner:
            return StopReason.CLAIM_LOST
        return StopReason.CANCELLED if reply.is_cancel_requested else None

    def _store(self, batch: EventBatch) -> None:
        record_events(claim=self._claim, events=batch.events)

    def _complete(self, result: JobResult, folder: WorkFolder) -> str:
        with heartbeats_of(self._claim, every_seconds=settings.JOB_HEARTBEAT_SECONDS):
            digest = store_output(result=result, folder=folder)
        job = self._persist(
            lambda: complete_job(claim=self._claim, values=result.values, output_artifact=digest)
        )
        return job.state

    def _fail(self, failure: JobFailure) -> str:
        return self._persist(
            lambda: fail_job(
                claim=self._claim,
                failure_class=failure.failure_class,
                code=failure.code,
                message=failure.message,
                details=failure.details,
            )
        ).state

    def _time_limit_failure(self) -> JobFailure:
        message = (
            f"The job was stopped after {self._claim.time_limit_seconds} seconds, its time limit; "
            "give it more time or less work."
        )
        return JobFailure(failure_class=FailureClass.INTERNAL, code="time-limit-exceeded", message=message)

    def _persist(self, write: Callable[[], _T]) -> _T:
        """Writes to the database, waiting for one that does not answer: the work behind it is done and
        dear.
        """
        give_up_at = time.monotonic() + DATABASE_PATIENCE_SECONDS
        while True:
            try:
                return write()
            except (OperationalError, InterfaceError):
                if time.monotonic() > give_up_at:
                    raise
                logger.warning(
                    "The database does not take the end of job %s.", self._claim.job_id, exc_info=True
                )
                close_old_connections()
                time.sleep(1.0)


def _machine_failure(error: OSError | StoreFull) -> JobFailure:
    is_full = isinstance(error, StoreFull)
    code = "store-full" if is_full else "machine-error"
    text = str(error) if is_full else str(error.strerror if isinstance(error, OSError) else error)
    return JobFailure(
        failure_class=FailureClass.INFRASTRUCTURE, code=code, message=f"The machine failed: {text}"
    )


def _failure(failure_class: str, error: AssayError) -> JobFailure:
    return JobFailure(failure_class=str(failure_class), code=error.code, message=error.detail)
