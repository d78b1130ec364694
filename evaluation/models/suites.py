"""Suites: the sets, prompt, schema and scoring that a task is judged by."""

from django.db import models

from registry.choices import DatasetRole
from registry.models import DatasetVersion
from registry.models.fields import Recorded, name_field, sha256_field


class Suite(Recorded):
    """A named line of suite versions."""

    name = name_field(unique=True)
    next_version_number = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class SuiteVersion(Recorded):
    """One immutable suite. `digest` covers the definition and the digests of its four datasets."""

    suite = models.ForeignKey(Suite, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    definition = models.JSONField()
    digest = sha256_field()

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(fields=("suite", "number"), name="suite_version_number_unique"),
            models.UniqueConstraint(fields=("suite", "digest"), name="suite_version_digest_unique"),
        )

    def __str__(self) -> str:
        return f"{self.suite.name}@{self.number}"


class SuiteDataset(models.Model):
    """Which dataset version plays which role in a suite version."""

    suite_version = models.ForeignKey(SuiteVersion, on_delete=models.CASCADE, related_name="datasets")
    role = models.CharField(max_length=16, choices=DatasetRole.choices)
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("suite_version", "role"), name="suite_role_unique"),)

    def __str__(self) -> str:
        return f"{self.role}: {self.dataset_version}"
