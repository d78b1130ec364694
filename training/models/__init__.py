"""Tables of the training app."""

from training.models.runs import MetricPoint, TrainingRun

__all__ = ["MetricPoint", "TrainingRun"]
