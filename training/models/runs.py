"""Training runs and their curves."""

import uuid

from django.db import models

from registry.models import Artifact, BaseModel, DatasetVersion, Job
from registry.models.fields import Recorded, name_field
from training.choices import TrainingPurpose, TrainingRunState


class TrainingRun(Recorded):
    """One training of one adapter: which data, base and configuration led to which bytes (MISSION G5).

    `parent` is the run that this one varies, and `remedy` how (MISSION F8, empty for a run of its own).
    `lint` is what the rules said of the configuration as it was given (MISSION D2): `findings`, `unchecked`
    and whether errors were accepted (`is_overridden`); {} for a run that was never judged.
    `num_synced_events` is the sequence of the last job event that was copied to `metric_points`, `findings`
    and `documents`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = name_field()
    base_model = models.ForeignKey(BaseModel, on_delete=models.PROTECT, related_name="training_runs")
    datasets = models.ManyToManyField(DatasetVersion, related_name="+")
    holdout = models.ForeignKey(
        DatasetVersion, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    config = models.JSONField(default=dict)
    purpose = models.CharField(
        max_length=16, choices=TrainingPurpose.choices, default=TrainingPurpose.TRAINING
    )
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children"
    )
    remedy = models.CharField(max_length=32, blank=True, default="")
    note = models.TextField(blank=True, default="")
    lint = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=16, choices=TrainingRunState.choices, default=TrainingRunState.QUEUED)
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    artifact = models.ForeignKey(Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    values = models.JSONField(default=dict, blank=True)
    failure = models.JSONField(null=True, blank=True)
    num_synced_events = models.PositiveIntegerField(default=0)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class MetricPoint(models.Model):
    """One value of one curve, e.g. `loss` at a step."""

    run = models.ForeignKey(TrainingRun, on_delete=models.CASCADE, related_name="metric_points")
    step = models.PositiveIntegerField()
    name = models.CharField(max_length=48)
    value = models.FloatField()

    class Meta:
        ordering = ("step",)
        constraints = (models.UniqueConstraint(fields=("run", "step", "name"), name="metric_point_unique"),)

    def __str__(self) -> str:
        return f"{self.name}[{self.step}]"
