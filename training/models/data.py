"""Raw data, what was made of it, and what people said of the result."""

import uuid

from django.conf import settings
from django.db import models

from registry.choices import DatasetRole
from registry.models import Artifact, BaseModel, DatasetVersion, Job
from registry.models.fields import Recorded, name_field
from training.choices import PreparationState, ReviewState, ReviewVerdict

MAX_EXAMPLE_ID_CHARACTERS = 128


class RawData(Recorded):
    """Raw files under a name: logs, tables, spreadsheets, as they were exported."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = name_field()
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ("-created_at",)
        verbose_name_plural = "raw data"
        constraints = (models.UniqueConstraint(fields=("name", "artifact"), name="raw_data_bytes_unique"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.artifact_id[:12]})"


class DataPreparation(Recorded):
    """One run of a recipe over raw data (MISSION C): from which bytes, by which rules, to which versions.

    `name` is the dataset of the main set; the holdout set goes to `name-holdout`. `report` is the artifact of
    everything that the job wrote.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = name_field()
    raw = models.ForeignKey(RawData, on_delete=models.PROTECT, related_name="preparations")
    recipe = models.JSONField(default=dict)
    general = models.ForeignKey(
        DatasetVersion, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    unchanged = models.ForeignKey(
        DatasetVersion, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    evaluation_sets = models.ManyToManyField(DatasetVersion, blank=True, related_name="+")
    base_model = models.ForeignKey(
        BaseModel, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    state = models.CharField(max_length=16, choices=PreparationState.choices, default=PreparationState.QUEUED)
    failure = models.JSONField(null=True, blank=True)
    report = models.ForeignKey(Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    values = models.JSONField(default=dict, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.name} from {self.raw.name}"


class PreparedSet(models.Model):
    """One set that a preparation gave. Equal bytes from several preparations are the same dataset version."""

    preparation = models.ForeignKey(DataPreparation, on_delete=models.CASCADE, related_name="sets")
    role = models.CharField(max_length=16, choices=DatasetRole.choices)
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="+")
    num_examples = models.PositiveIntegerField()

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("preparation", "role"), name="prepared_set_role_unique"),
        )

    def __str__(self) -> str:
        return f"{self.role}: {self.dataset_version}"


class ReviewTask(Recorded):
    """Examples of a dataset version, chosen at random, that people look at one by one (MISSION C3(6), F4).

    `reviewer` is the person asked to do it, null when anybody may. `result` is the version without the bad
    and with the fixed examples, null before the review is closed or when it was closed without one.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="+")
    seed = models.PositiveBigIntegerField()
    num_examples = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=ReviewState.choices, default=ReviewState.OPEN)
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    result = models.ForeignKey(
        DatasetVersion, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        verbose_name = "review"

    def __str__(self) -> str:
        return f"Review of {self.dataset_version}"


class ReviewItem(models.Model):
    """One example of a review. `line` is the dataset's line as it stands there; a JSON column of PostgreSQL
    would forget the order of its keys.

    `revision` counts the changes: whoever changes a verdict says which revision was seen.
    """

    task = models.ForeignKey(ReviewTask, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    example_id = models.CharField(max_length=MAX_EXAMPLE_ID_CHARACTERS)
    line = models.TextField()
    verdict = models.CharField(max_length=8, choices=ReviewVerdict.choices, blank=True, default="")
    fixed_answer = models.TextField(blank=True, default="")
    note = models.TextField(blank=True, default="")
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    reviewed_at = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("position",)
        verbose_name = "reviewed example"
        constraints = (
            models.UniqueConstraint(fields=("task", "position"), name="review_item_position_unique"),
            models.UniqueConstraint(fields=("task", "example_id"), name="review_item_example_unique"),
        )

    def __str__(self) -> str:
        return f"{self.example_id} ({self.verdict or 'open'})"
