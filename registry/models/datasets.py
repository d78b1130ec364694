"""Datasets and their immutable versions."""

from django.db import models

from registry.choices import DatasetRole
from registry.models.artifacts import Artifact
from registry.models.fields import Recorded, name_field


class Dataset(Recorded):
    """A named line of dataset versions, all of one role."""

    name = name_field(unique=True)
    role = models.CharField(max_length=16, choices=DatasetRole.choices)
    next_version_number = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class DatasetVersion(Recorded):
    """One checked `data.jsonl`. `is_verified`: every reference was confirmed by a person (MISSION F4).

    `num_reviewed` counts the examples that a person has looked at (MISSION C3(6)); of these, `num_bad` should
    not be in the dataset and `num_to_fix` need another answer.
    """

    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="+")
    num_examples = models.PositiveIntegerField()
    num_verified = models.PositiveIntegerField()
    num_reviewed = models.PositiveIntegerField(default=0)
    num_bad = models.PositiveIntegerField(default=0)
    num_to_fix = models.PositiveIntegerField(default=0)
    card = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(fields=("dataset", "number"), name="dataset_version_number_unique"),
            models.UniqueConstraint(fields=("dataset", "artifact"), name="dataset_version_bytes_unique"),
        )

    def __str__(self) -> str:
        return f"{self.dataset.name}@{self.number}"

    @property
    def is_verified(self) -> bool:
        """True when a person or a rule confirmed every reference answer."""
        return self.num_examples > 0 and self.num_verified == self.num_examples
