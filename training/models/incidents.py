"""The incident register (MISSION T6): what went wrong, how it was found, why, and what ended it."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from registry.models.fields import sha256_field
from training.choices import CheckAnswer, IncidentEntryKind, IncidentOpener, IncidentState
from training.models.handbook import Symptom
from training.models.runs import TrainingRun

MAX_TITLE_CHARACTERS = 200
MAX_DETECTOR_CHARACTERS = 96
MAX_ACTOR_CHARACTERS = 160


class Incident(models.Model):
    """One fault in one training or evaluation.

    `symptom` is its row of the handbook, null for what the handbook does not know. `evaluation_run` is the id
    of an evaluation as text, since the apps do not know each other's tables. `first_step` is where it begins,
    null when it has no step. `fingerprint` is the digest of what the run was told: the bytes of base and
    data, the whole configuration and the version of the code; `configuration` spells it out as it was then.
    Both are empty without a run.

    `asks_for_check`: the symptom has occurred before, so somebody is asked to make a check of it;
    `check_answer` with `check_text`, the check or the reason why there is none, is the answer.
    `revision` grows by one with each change.
    """

    number = models.BigAutoField(primary_key=True)
    title = models.CharField(max_length=MAX_TITLE_CHARACTERS)
    symptom = models.ForeignKey(
        Symptom,
        to_field="code",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="incidents",
    )
    training_run = models.ForeignKey(
        TrainingRun, null=True, blank=True, on_delete=models.SET_NULL, related_name="incidents"
    )
    evaluation_run = models.CharField(max_length=64, blank=True, default="")
    first_step = models.PositiveIntegerField(null=True, blank=True)
    fingerprint = sha256_field(blank=True, default="")
    configuration = models.JSONField(default=dict, blank=True)
    found = models.TextField("how it was found", blank=True, default="")
    cause = models.TextField(blank=True, default="")
    fix = models.TextField(blank=True, default="")
    state = models.CharField(max_length=20, choices=IncidentState.choices, default=IncidentState.OPEN)
    opened_by = models.CharField(max_length=12, choices=IncidentOpener.choices)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    opened_at = models.DateTimeField(default=timezone.now, db_index=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    asks_for_check = models.BooleanField(default=False)
    check_answer = models.CharField(max_length=8, choices=CheckAnswer.choices, blank=True, default="")
    check_text = models.TextField(blank=True, default="")
    check_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    check_at = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("-number",)
        constraints = (
            # The diagnosis looks at a run again and again; what it finds of one kind is one incident.
            models.UniqueConstraint(
                fields=("training_run", "symptom"),
                condition=Q(opened_by=IncidentOpener.DIAGNOSIS, symptom__isnull=False),
                name="one_incident_of_a_run_and_symptom",
            ),
            models.UniqueConstraint(
                fields=("training_run",),
                condition=Q(opened_by=IncidentOpener.DIAGNOSIS, symptom__isnull=True),
                name="one_incident_of_a_run_without_symptom",
            ),
        )

    def __str__(self) -> str:
        return f"#{self.number} {self.title}"


class IncidentEntry(models.Model):
    """One line in the log of an incident; lines are only added.

    `actor` is the name as it stands in the audit log. `detector` is the code of what found something, ""
    for what people wrote.
    """

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="entries")
    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=MAX_ACTOR_CHARACTERS)
    kind = models.CharField(max_length=8, choices=IncidentEntryKind.choices)
    detector = models.CharField(max_length=MAX_DETECTOR_CHARACTERS, blank=True, default="")
    text = models.TextField()

    class Meta:
        ordering = ("pk",)
        verbose_name_plural = "incident entries"
        constraints = (
            models.UniqueConstraint(
                fields=("incident", "detector"),
                condition=~Q(detector=""),
                name="incident_detector_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} of #{self.incident_id}"
