"""Changes to jobs: queueing, the life of one attempt, and recovery from lost workers.

Every change of state is a compare-and-set on the old state (and, while an attempt runs, on its claim),
follows the table `JOB_TRANSITIONS`, and leaves an audit row and a `state` event.
"""

from registry.services.jobs.attempts import (
    cancel_claimed_job,
    claim_job,
    complete_job,
    fail_job,
    record_events,
    record_heartbeat,
    record_workdir,
    release_job,
)
from registry.services.jobs.queueing import cancel_job, enqueue_job, request_cancel, resend_waiting_jobs
from registry.services.jobs.records import ClaimedJob, ClaimLost, HeartbeatReply, JobEventRecord
from registry.services.jobs.recovery import requeue_jobs_of_worker, requeue_lapsed_jobs

__all__ = [
    "ClaimLost",
    "ClaimedJob",
    "HeartbeatReply",
    "JobEventRecord",
    "cancel_claimed_job",
    "cancel_job",
    "claim_job",
    "complete_job",
    "enqueue_job",
    "fail_job",
    "record_events",
    "record_heartbeat",
    "record_workdir",
    "release_job",
    "request_cancel",
    "requeue_jobs_of_worker",
    "requeue_lapsed_jobs",
    "resend_waiting_jobs",
]
