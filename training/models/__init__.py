"""Tables of the training app."""

from training.models.data import DataPreparation, PreparedSet, RawData, ReviewItem, ReviewTask
from training.models.handbook import Symptom, SymptomText
from training.models.incidents import Incident, IncidentEntry
from training.models.run_reports import MiniConfiguration, OverfitPass, RunDocument, TrainingFinding
from training.models.runs import MetricPoint, TrainingRun

__all__ = [
    "DataPreparation",
    "Incident",
    "IncidentEntry",
    "MetricPoint",
    "MiniConfiguration",
    "OverfitPass",
    "PreparedSet",
    "RawData",
    "ReviewItem",
    "ReviewTask",
    "RunDocument",
    "Symptom",
    "SymptomText",
    "TrainingFinding",
    "TrainingRun",
]
