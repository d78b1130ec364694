"""Reads training runs and their curves."""

import uuid
from collections.abc import Mapping

from django.db.models import QuerySet

from training.choices import ACTIVE_TRAINING_STATES
from training.errors import TrainingNotFound
from training.models import MetricPoint, TrainingRun


def list_training_runs() -> QuerySet[TrainingRun]:
    """All training runs, newest first."""
    runs = TrainingRun.objects.select_related("base_model", "holdout__dataset", "job", "created_by")
    return runs.prefetch_related("datasets__dataset")


def get_training_run(run_id: uuid.UUID) -> TrainingRun:
    """One training run.

    Raises:
        TrainingNotFound: there is none of this id.
    """
    run = list_training_runs().filter(pk=run_id).first()
    if run is None:
        raise TrainingNotFound("training-run-not-found", run_id=str(run_id))
    return run


def list_active_run_ids() -> list[uuid.UUID]:
    """The ids of the runs whose job has not ended, as far as was seen."""
    runs = TrainingRun.objects.filter(state__in=ACTIVE_TRAINING_STATES).order_by("created_at")
    return list(runs.values_list("pk", flat=True))


def list_run_ids_of_job(job_id: uuid.UUID) -> list[uuid.UUID]:
    """The ids of the runs that a job belongs to."""
    return list(TrainingRun.objects.filter(job_id=job_id).values_list("pk", flat=True))


def get_curves(run: TrainingRun) -> Mapping[str, list[tuple[int, float]]]:
    """The run's curves by name, each a list of (step, value) in the order of steps."""
    curves: dict[str, list[tuple[int, float]]] = {}
    points = MetricPoint.objects.filter(run=run).order_by("name", "step")
    for name, step, value in points.values_list("name", "step", "value"):
        curves.setdefault(name, []).append((step, value))
    return curves
