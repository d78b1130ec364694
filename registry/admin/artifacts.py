"""Artifacts, blobs and uploads: shown, never changed."""

from django.contrib import admin

from registry.admin.base import AdminOnlyAdmin, ReadOnlyAdmin, ReadOnlyInline, short_digest, shown_size
from registry.models import Artifact, ArtifactFile, Blob, Upload, UploadFile


class ArtifactFileInline(ReadOnlyInline):
    """The files of an artifact."""

    model = ArtifactFile
    fields = ("path", "size", "blob")
    readonly_fields = fields

    @admin.display(description="size")
    def size(self, row: ArtifactFile) -> str:
        """The file's size."""
        return shown_size(row.blob)


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    """Artifacts."""

    list_display = ("short", "kind", "num_files", shown_size, "created_at", "created_by")
    list_filter = ("kind",)
    search_fields = ("digest",)
    ordering = ("-created_at",)
    inlines = (ArtifactFileInline,)
    list_select_related = ("created_by",)

    @admin.display(description="digest", ordering="digest")
    def short(self, artifact: Artifact) -> str:
        """The beginning of the digest."""
        return short_digest(artifact.digest)


@admin.register(Blob)
class BlobAdmin(AdminOnlyAdmin):
    """Blobs."""

    list_display = ("sha256", shown_size, "created_at")
    search_fields = ("sha256",)
    ordering = ("-created_at",)


class UploadFileInline(ReadOnlyInline):
    """The declared files of an upload."""

    model = UploadFile
    fields = ("path", "size_bytes", "received_bytes", "sha256")
    readonly_fields = fields


@admin.register(Upload)
class UploadAdmin(ReadOnlyAdmin):
    """Uploads."""

    list_display = ("id", "kind", "state", "created_at", "expires_at", "created_by")
    list_filter = ("kind", "state")
    search_fields = ("id", "artifact__digest")
    ordering = ("-created_at",)
    inlines = (UploadFileInline,)
    list_select_related = ("created_by",)
