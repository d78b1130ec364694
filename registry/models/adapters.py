"""Base models, adapters and their versions."""

import uuid

from django.db import models

from registry.choices import VersionState
from registry.models.artifacts import Artifact
from registry.models.fields import Recorded, name_field, sha256_field


class BaseModel(Recorded):
    """A base model whose bytes the registry holds. Its identity is the artifact's digest, not its name."""

    name = name_field(unique=True)
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="base_models")
    architecture = models.CharField(max_length=96)
    num_parameters = models.PositiveBigIntegerField()
    dtype = models.CharField(max_length=16)
    chat_template_sha256 = sha256_field(blank=True, default="")
    source = models.CharField(max_length=255, blank=True, default="")
    summary = models.JSONField(default=dict, blank=True)

    def __str__(self) -> str:
        return self.name


class Adapter(Recorded):
    """A named line of adapter versions for one task.

    `next_version_number` is raised under a row lock, so two submissions never share a number.
    """

    name = name_field(unique=True)
    description = models.TextField(blank=True, default="")
    next_version_number = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class AdapterVersion(Recorded):
    """One submitted set of adapter bytes on one base model."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    adapter = models.ForeignKey(Adapter, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    base_model = models.ForeignKey(BaseModel, on_delete=models.PROTECT, related_name="versions")
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="+")
    merged_artifact = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    training_datasets = models.ManyToManyField("registry.DatasetVersion", blank=True, related_name="+")
    state = models.CharField(max_length=16, choices=VersionState.choices, default=VersionState.SUBMITTED)
    findings = models.JSONField(default=list, blank=True)
    summary = models.JSONField(default=dict, blank=True)
    failure = models.JSONField(null=True, blank=True)
    notes = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(fields=("adapter", "number"), name="adapter_version_number_unique"),
            models.UniqueConstraint(
                fields=("adapter", "artifact", "base_model"), name="adapter_version_bytes_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.adapter.name}@{self.number}"
