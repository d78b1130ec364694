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
