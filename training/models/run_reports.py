"""What a training run reports besides its curves, and what is remembered of it for later runs."""

from django.db import models
from django.db.models import Q

from registry.models import BaseModel
from registry.models.fields import Recorded, sha256_field
from training.choices import FindingSeverity
from training.models.runs import TrainingRun

MAX_CODE_CHARACTERS = 64
MAX_DOCUMENT_NAME_CHARACTERS = 32


class RunDocument(models.Model):
    """A document of a run under its name: `preflight`, `not_finite` or `mini`.

    Apart from the run, because it may have 250 kB and lists of runs do not need it. The document of a later
    attempt takes the place of an earlier one. `passed` is what it says of itself, null when it says nothing.
    """

    run = models.ForeignKey(TrainingRun, on_delete=models.CASCADE, related_name="documents")
    name = models.CharField(max_length=MAX_DOCUMENT_NAME_CHARACTERS)
    attempt = models.PositiveIntegerField(default=1)
    passed = models.BooleanField(null=True, blank=True)
    content = models.JSONField(default=dict)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("run", "name"), name="run_document_unique"),)

    def __str__(self) -> str:
        return f"{self.name} of {self.run_id}"


class TrainingFinding(models.Model):
    """Something that the monitor saw in a run (MISSION D3, T5). `row` is the row of the handbook.

    `step` is where it begins; `evidence` maps names to numbers.
    """

    run = models.ForeignKey(TrainingRun, on_delete=models.CASCADE, related_name="findings")
    code = models.CharField(max_length=MAX_CODE_CHARACTERS)
    row = models.CharField(max_length=MAX_CODE_CHARACTERS, blank=True, default="")
    symptom_class = models.CharField(max_length=32, blank=True, default="")
    severity = models.CharField(max_length=8, choices=FindingSeverity.choices)
    step = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField(default=1)
    message = models.TextField()
    evidence = models.JSONField(default=dict, blank=True)
    treatment = models.TextField(blank=True, default="")

    class Meta:
        # Where several begin at one step the monitor tells those of resources first.
        ordering = ("step", "pk")
        constraints = (
            models.UniqueConstraint(fields=("run", "code", "step"), name="training_finding_unique"),
        )

    def __str__(self) -> str:
        return f"{self.code} at step {self.step}"


class OverfitPass(models.Model):
    """An overfit test that passed (MISSION T3): runs with this fingerprint need not repeat it.

    `run` is the first one that passed it.
    """

    fingerprint = sha256_field(unique=True)
    base_model = models.ForeignKey(BaseModel, on_delete=models.CASCADE, related_name="+")
    run = models.ForeignKey(TrainingRun, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    passed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-passed_at",)
        verbose_name = "passed overfit test"

    def __str__(self) -> str:
        return self.fingerprint[:12]


class MiniConfiguration(Recorded):
    """Settings that are laid over a configuration for the minimal reproducible experiment (MISSION D6).

    Rows never change: an edit is a new row that becomes the active one. Without an active row the defaults of
    the engine hold.
    """

    overlay = models.JSONField(default=dict)
    is_active = models.BooleanField(default=True)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("is_active",), condition=Q(is_active=True), name="one_active_mini_configuration"
            ),
        )

    def __str__(self) -> str:
        return f"Mini configuration of {self.created_at:%Y-%m-%d %H:%M}"
