"""Evaluation runs and the results of their examples."""

import uuid

from django.db import models
from django.db.models import Q

from evaluation.choices import RunState, RunSubject
from evaluation.engine.examples import MAX_ID_CHARACTERS
from evaluation.models.suites import SuiteVersion
from registry.choices import DatasetRole, ServingForm
from registry.models import AdapterVersion, Artifact, BaseModel, Job
from registry.models.fields import Recorded

MAX_TAG_CHARACTERS = 200
"""Longer dimensions and categories are cut in their columns; the row in `details` keeps them whole."""


class EvaluationRun(Recorded):
    """One evaluation of one subject on one suite.

    A candidate run is what a client calls a submission: it carries an adapter version through all steps to a
    decision under `policy`. A baseline run has no version and no policy; a candidate run waits for the
    baseline run of the same base model and suite.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    subject = models.CharField(max_length=16, choices=RunSubject.choices)
    base_model = models.ForeignKey(BaseModel, on_delete=models.PROTECT, related_name="evaluation_runs")
    version = models.ForeignKey(
        AdapterVersion, null=True, blank=True, on_delete=models.PROTECT, related_name="evaluation_runs"
    )
    suite_version = models.ForeignKey(SuiteVersion, on_delete=models.PROTECT, related_name="runs")
    policy = models.ForeignKey(
        "evaluation.Policy", null=True, blank=True, on_delete=models.PROTECT, related_name="runs"
    )
    baseline = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="candidates"
    )
    form = models.CharField(max_length=16, choices=[*ServingForm.choices, ("base", "Base")])
    state = models.CharField(max_length=16, choices=RunState.choices, default=RunState.PENDING)
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    report_artifact = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    metrics = models.JSONField(null=True, blank=True)
    failure = models.JSONField(null=True, blank=True)
    notes = models.TextField(blank=True, default="")
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("version", "suite_version", "policy"),
                condition=Q(subject=RunSubject.CANDIDATE),
                name="candidate_run_unique",
            ),
            models.UniqueConstraint(
                fields=("base_model", "suite_version"),
                condition=Q(subject=RunSubject.BASELINE),
                name="baseline_run_unique",
            ),
            models.CheckConstraint(
                condition=Q(subject=RunSubject.BASELINE, version__isnull=True, policy__isnull=True)
                | Q(subject=RunSubject.CANDIDATE, version__isnull=False, policy__isnull=False),
                name="run_subject_consistent",
            ),
        )

    def __str__(self) -> str:
        return f"{self.subject} {self.version or self.base_model} on {self.suite_version}"


class ExampleResult(models.Model):
    """What the subject answered to one example in one form, and how that was scored.

    `prompt` is the last message of the input, for searching; `score` is null when the example has nothing to
    be scored against; `details` keeps the whole row of the report.
    """

    run = models.ForeignKey(EvaluationRun, on_delete=models.CASCADE, related_name="examples")
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=DatasetRole.choices)
    form = models.CharField(max_length=16)
    example_id = models.CharField(max_length=MAX_ID_CHARACTERS)
    dimension = models.CharField(max_length=MAX_TAG_CHARACTERS, blank=True, default="")
    category = models.CharField(max_length=MAX_TAG_CHARACTERS, blank=True, default="")
    prompt = models.TextField(blank=True, default="")
    output = models.TextField(blank=True)
    reference = models.TextField(null=True, blank=True)  # noqa: DJ001 - null means "no reference", not ""
    score = models.FloatField(null=True, blank=True)
    is_passed = models.BooleanField(null=True, blank=True)
    parse = models.CharField(max_length=16, blank=True, default="")
    finish_reason = models.CharField(max_length=16, blank=True, default="")
    details = models.JSONField(default=dict)

    class Meta:
        ordering = ("position",)
        indexes = (models.Index(fields=("run", "role", "is_passed")),)
        constraints = (
            models.UniqueConstraint(
                fields=("run", "role", "form", "example_id"), name="example_result_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.role}/{self.example_id}"
