"""Triages: what a base model lacks for a task, before anything is trained."""

import uuid

from django.conf import settings
from django.db import models

from evaluation.choices import TriageState
from evaluation.engine.examples import MAX_ID_CHARACTERS
from evaluation.engine.triage.kinds import CONFIRMABLE, Outcome
from registry.models import Artifact, BaseModel, Job
from registry.models.fields import Recorded, name_field

_KINDS = [(kind, kind) for kind in CONFIRMABLE]


class Triage(Recorded):
    """About twenty samples on one base model under one or several prompts (MISSION A1).

    `config` is a `TriageConfig` with everything filled in; the samples stand in the job's inputs. `summary`
    is the content of triage.json. `verdict` is null until a person closes the triage; before, the verdict is
    worked out from the items whenever somebody looks.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = name_field()
    base_model = models.ForeignKey(BaseModel, on_delete=models.PROTECT, related_name="triages")
    config = models.JSONField()
    num_samples = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=TriageState.choices, default=TriageState.QUEUED)
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    report = models.ForeignKey(Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    summary = models.JSONField(null=True, blank=True)
    verdict = models.JSONField(null=True, blank=True)
    failure = models.JSONField(null=True, blank=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    closed_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} on {self.base_model}"


class TriageItem(models.Model):
    """One sample under the best prompt, what the rules say of it, and what a person says.

    `rule_kind` is empty when the answer did not fail; `confirmed_kind` is empty until a person has spoken.
    `details` keeps the whole row of the report. `revision` counts the changes: whoever confirms says which
    revision was seen.
    """

    triage = models.ForeignKey(Triage, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    sample_id = models.CharField(max_length=MAX_ID_CHARACTERS)
    outcome = models.CharField(max_length=16, choices=[(item.value, item.value) for item in Outcome])
    rule_kind = models.CharField(max_length=32, blank=True, default="")
    confidence = models.FloatField(default=0.0)
    confirmed_kind = models.CharField(max_length=32, choices=_KINDS, blank=True, default="")
    note = models.TextField(blank=True, default="")
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    confirmed_at = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=0)
    details = models.JSONField(default=dict)

    class Meta:
        ordering = ("position",)
        verbose_name = "triaged sample"
        constraints = (
            models.UniqueConstraint(fields=("triage", "position"), name="triage_item_position_unique"),
            models.UniqueConstraint(fields=("triage", "sample_id"), name="triage_item_sample_unique"),
        )

    def __str__(self) -> str:
        return f"{self.sample_id} ({self.confirmed_kind or self.rule_kind or self.outcome})"
