"""States and kinds of the registry, with the tables of allowed transitions.

The tables are the only place that says which change of state is legal; services check them before a
compare-and-set (DESIGN section 4).
"""

from collections.abc import Mapping

from django.db.models import TextChoices


class ArtifactKind(TextChoices):
    """What a content-addressed artifact holds."""

    BASE_MODEL = "base_model"
    ADAPTER = "adapter"
    MERGED_MODEL = "merged_model"
    DATASET = "dataset"
    SUITE = "suite"
    REPORT = "report"
    RAW_DATA = "raw_data"
    PREPARED_DATA = "prepared_data"
    OTHER = "other"


class DatasetRole(TextChoices):
    """What a dataset version may be used for (DESIGN section 3)."""

    TRAIN = "train"
    HOLDOUT = "holdout"
    OOD = "ood"
    REGRESSION = "regression"
    CANARY = "canary"
    GENERAL = "general"


EVALUATION_ROLES: tuple[str, ...] = (
    DatasetRole.HOLDOUT,
    DatasetRole.OOD,
    DatasetRole.REGRESSION,
    DatasetRole.CANARY,
)
TRAINING_ROLES: tuple[str, ...] = (DatasetRole.TRAIN, DatasetRole.GENERAL)


class ServingForm(TextChoices):
    """The form in which a channel serves an adapter version (MISSION E4)."""

    MERGED = "merged"
    ADAPTER = "adapter"


class VersionState(TextChoices):
    """Where an adapter version stands (DESIGN section 4).

    `invalid`: the submission is at fault. `failed`: we are at fault; it may be retried.
    """

    SUBMITTED = "submitted"
    CHECKED = "checked"
    MERGED = "merged"
    EVALUATED = "evaluated"
    PASSED = "passed"
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    FAILED = "failed"
    CANCELLED = "cancelled"


VERDICT_STATES: frozenset[str] = frozenset(
    {VersionState.PASSED, VersionState.REJECTED, VersionState.INCONCLUSIVE}
)
FINAL_VERSION_STATES: frozenset[str] = VERDICT_STATES | {
    VersionState.INVALID,
    VersionState.FAILED,
    VersionState.CANCELLED,
}

VERSION_TRANSITIONS: Mapping[str, frozenset[str]] = {
    VersionState.SUBMITTED: frozenset(
        {VersionState.CHECKED, VersionState.INVALID, VersionState.FAILED, VersionState.CANCELLED}
    ),
    VersionState.CHECKED: frozenset(
        {
            VersionState.MERGED,
            VersionState.EVALUATED,
            VersionState.INVALID,
            VersionState.FAILED,
            VersionState.CANCELLED,
        }
    ),
    VersionState.MERGED: frozenset({VersionState.EVALUATED, VersionState.FAILED, VersionState.CANCELLED}),
    VersionState.EVALUATED: VERDICT_STATES | {VersionState.FAILED, VersionState.CANCELLED},
    # A new evaluation of the same bytes (another suite or policy) starts again from what is already there.
    VersionState.PASSED: frozenset({VersionState.CHECKED, VersionState.MERGED}),
    VersionState.REJECTED: frozenset({VersionState.CHECKED, VersionState.MERGED}),
    VersionState.INCONCLUSIVE: frozenset({VersionState.CHECKED, VersionState.MERGED}),
    VersionState.INVALID: frozenset(),
    VersionState.FAILED: frozenset({VersionState.SUBMITTED, VersionState.CHECKED, VersionState.MERGED}),
    VersionState.CANCELLED: frozenset({VersionState.SUBMITTED, VersionState.CHECKED, VersionState.MERGED}),
}


class UploadState(TextChoices):
    """Life of an upload."""

    OPEN = "open"
    COMMITTED = "committed"
    EXPIRED = "expired"


class JobKind(TextChoices):
    """What a job process does."""

    CHECK = "check"
    MERGE = "merge"
    EVALUATE = "evaluate"
    TRAIN = "train"
    PREPARE = "prepare"
    TRIAGE = "triage"


class JobQueue(TextChoices):
    """Celery queues, by the resource that a job needs."""

    CPU = "cpu"
    ACCELERATOR = "accelerator"


QUEUE_OF_KIND: Mapping[str, str] = {
    JobKind.CHECK: JobQueue.CPU,
    JobKind.MERGE: JobQueue.CPU,
    JobKind.EVALUATE: JobQueue.ACCELERATOR,
    JobKind.TRAIN: JobQueue.ACCELERATOR,
    JobKind.PREPARE: JobQueue.CPU,
    JobKind.TRIAGE: JobQueue.ACCELERATOR,
}


class JobState(TextChoices):
    """Life of a job. `queued` again after an infrastructure failure with attempts left."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE_JOB_STATES: frozenset[str] = frozenset({JobState.QUEUED, JobState.RUNNING})
FINAL_JOB_STATES: frozenset[str] = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})

JOB_TRANSITIONS: Mapping[str, frozenset[str]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.CANCELLED, JobState.FAILED, JobState.SUCCEEDED}),
    JobState.RUNNING: frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.QUEUED}),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
}


class FailureClass(TextChoices):
    """Who is responsible for a failed job. Only `infrastructure` is retried by itself."""

    USER = "user"
    INFRASTRUCTURE = "infrastructure"
    INTERNAL = "internal"


class JobEventType(TextChoices):
    """Kinds of line in a job's event stream."""

    PROGRESS = "progress"
    LOG = "log"
    METRIC = "metric"
    RECORD = "record"
    STATE = "state"


class TokenScope(TextChoices):
    """What an API token may do. `admin` includes every other scope."""

    READ = "read"
    SUBMIT = "submit"
    EVALUATE = "evaluate"
    REVIEW = "review"
    PROMOTE = "promote"
    PULL = "pull"
    ADMIN = "admin"


class PromotionKind(TextChoices):
    """How a channel came to serve what it serves."""

    PROMOTE = "promote"
    ROLLBACK = "rollback"
