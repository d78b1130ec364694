"""States of the training app."""

from django.db.models import TextChoices


class TrainingRunState(TextChoices):
    """Life of a training run; follows its job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
