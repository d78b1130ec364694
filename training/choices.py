"""States of the training app."""

from collections.abc import Mapping

from django.db.models import TextChoices


class TrainingPurpose(TextChoices):
    """What a run is for.

    `preflight` ends after the checks that come before the first step (MISSION T1), `mini` after the minimal
    reproducible experiment (MISSION D6); of both the verdict matters, not the weights.
    """

    TRAINING = "training"
    MINI = "mini"
    PREFLIGHT = "preflight"


class DocumentName(TextChoices):
    """The documents of a run that pages and services know; a run may report others, which are kept."""

    PREFLIGHT = "preflight"
    NOT_FINITE = "not_finite"
    MINI = "mini"


class FindingSeverity(TextChoices):
    """How much a finding of the monitor weighs."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class TrainingRunState(TextChoices):
    """Life of a training run; follows its job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE_TRAINING_STATES: frozenset[str] = frozenset({TrainingRunState.QUEUED, TrainingRunState.RUNNING})

TRAINING_TRANSITIONS: Mapping[str, frozenset[str]] = {
    TrainingRunState.QUEUED: frozenset(
        {
            TrainingRunState.RUNNING,
            TrainingRunState.SUCCEEDED,
            TrainingRunState.FAILED,
            TrainingRunState.CANCELLED,
        }
    ),
    # Back to `queued` when its worker was lost and the job waits for another.
    TrainingRunState.RUNNING: frozenset(
        {
            TrainingRunState.QUEUED,
            TrainingRunState.SUCCEEDED,
            TrainingRunState.FAILED,
            TrainingRunState.CANCELLED,
        }
    ),
    TrainingRunState.SUCCEEDED: frozenset(),
    TrainingRunState.FAILED: frozenset(),
    TrainingRunState.CANCELLED: frozenset(),
}


class PreparationState(TextChoices):
    """Life of a data preparation; follows its job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE_PREPARATION_STATES: frozenset[str] = frozenset({PreparationState.QUEUED, PreparationState.RUNNING})

PREPARATION_TRANSITIONS: Mapping[str, frozenset[str]] = {
    PreparationState.QUEUED: frozenset(
        {
            PreparationState.RUNNING,
            PreparationState.SUCCEEDED,
            PreparationState.FAILED,
            PreparationState.CANCELLED,
        }
    ),
    # Back to `queued` when its worker was lost and the job waits for another.
    PreparationState.RUNNING: frozenset(
        {
            PreparationState.QUEUED,
            PreparationState.SUCCEEDED,
            PreparationState.FAILED,
            PreparationState.CANCELLED,
        }
    ),
    PreparationState.SUCCEEDED: frozenset(),
    # A retry.
    PreparationState.FAILED: frozenset({PreparationState.QUEUED}),
    PreparationState.CANCELLED: frozenset({PreparationState.QUEUED}),
}


class ReviewState(TextChoices):
    """Life of a review of a dataset version."""

    OPEN = "open"
    CLOSED = "closed"


class ReviewVerdict(TextChoices):
    """What a person says of one example; an empty text is no verdict yet.

    `fix`: the input may stay, but the answer must be another, which the reviewer writes.
    """

    GOOD = "good"
    BAD = "bad"
    FIX = "fix"


class HandbookLanguage(TextChoices):
    """Languages of the handbook's texts."""

    EN = "en", "English"
    ZH = "zh", "中文"


class SymptomOrigin(TextChoices):
    """Where a row of the handbook comes from: the files of this version, or the people of this server."""

    SHIPPED = "shipped"
    OWN = "own"


class IncidentState(TextChoices):
    """Life of an incident. A dismissed one turned out to be none."""

    OPEN = "open"
    BEING_INVESTIGATED = "being-investigated"
    RESOLVED = "resolved"
    DISMISSED = "dismissed"


UNCLOSED_INCIDENT_STATES: frozenset[str] = frozenset({IncidentState.OPEN, IncidentState.BEING_INVESTIGATED})

INCIDENT_TRANSITIONS: Mapping[str, frozenset[str]] = {
    IncidentState.OPEN: frozenset(
        {IncidentState.BEING_INVESTIGATED, IncidentState.RESOLVED, IncidentState.DISMISSED}
    ),
    IncidentState.BEING_INVESTIGATED: frozenset({IncidentState.RESOLVED, IncidentState.DISMISSED}),
    # What comes back is a new incident: that is how recurrences are counted (MISSION T6).
    IncidentState.RESOLVED: frozenset(),
    IncidentState.DISMISSED: frozenset(),
}


class IncidentOpener(TextChoices):
    """Who opened an incident."""

    DIAGNOSIS = "diagnosis"
    PERSON = "person"


class IncidentEntryKind(TextChoices):
    """What an entry in an incident's log tells: what was found, done, changed or decided."""

    FINDING = "finding"
    STEP = "step"
    STATE = "state"
    EDIT = "edit"
    CHECK = "check"


class CheckAnswer(TextChoices):
    """What a person answers when a symptom that recurs asks to become a check (MISSION T6)."""

    MADE = "made", "A check was made"
    DECLINED = "declined", "No check, for a reason"
