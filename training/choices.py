"""States of the training app."""

from collections.abc import Mapping

from django.db.models import TextChoices


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
