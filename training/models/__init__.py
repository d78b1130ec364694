"""Tables of the training app."""

from training.models.data import DataPreparation, PreparedSet, RawData, ReviewItem, ReviewTask
from training.models.runs import MetricPoint, TrainingRun

__all__ = [
    "DataPreparation",
    "MetricPoint",
    "PreparedSet",
    "RawData",
    "ReviewItem",
    "ReviewTask",
    "TrainingRun",
]
