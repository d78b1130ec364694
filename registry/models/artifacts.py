"""Content-addressed storage: blobs, artifacts made of them, and uploads that bring them in."""

import uuid

from django.db import models
from django.db.models import F, Q

from registry.choices import ArtifactKind, UploadState
from registry.models.fields import Recorded, sha256_field


class Blob(models.Model):
    """One stored file content. The bytes lie in the blob store under the same sha256."""

    sha256 = sha256_field(primary_key=True)
    size_bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256


class Artifact(Recorded):
    """An immutable set of files; `digest` is the sha256 of the canonical JSON of their list."""

    digest = sha256_field(primary_key=True)
    kind = models.CharField(max_length=16, choices=ArtifactKind.choices)
    num_files = models.PositiveIntegerField()
    size_bytes = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"{self.kind}:{self.digest[:12]}"


class ArtifactFile(models.Model):
    """One path inside an artifact."""

    artifact = models.ForeignKey(Artifact, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=255)
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ("path",)
        constraints = (models.UniqueConstraint(fields=("artifact", "path"), name="artifact_path_unique"),)

    def __str__(self) -> str:
        return self.path


class Upload(Recorded):
    """A declared set of files that a client is sending; becomes one artifact at commit."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=16, choices=ArtifactKind.choices)
    state = models.CharField(max_length=16, choices=UploadState.choices, default=UploadState.OPEN)
    expires_at = models.DateTimeField()
    artifact = models.ForeignKey(Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return str(self.id)


class UploadFile(models.Model):
    """One declared file of an upload and how much of it has arrived."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="files")
    path = models.CharField(max_length=255)
    size_bytes = models.PositiveBigIntegerField()
    sha256 = sha256_field()
    received_bytes = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("path",)
        constraints = (
            models.UniqueConstraint(fields=("upload", "path"), name="upload_path_unique"),
            models.CheckConstraint(
                condition=Q(received_bytes__lte=F("size_bytes")), name="upload_file_not_over_size"
            ),
        )

    def __str__(self) -> str:
        return self.path
