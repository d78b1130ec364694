"""Datasets and their versions."""

from django.contrib import admin

from registry.admin.base import ReadOnlyAdmin, ReadOnlyInline, short_digest
from registry.models import Dataset, DatasetVersion


class DatasetVersionInline(ReadOnlyInline):
    """The versions of a dataset."""

    model = DatasetVersion
    fields = ("number", "num_examples", "num_verified", "artifact", "created_at")
    readonly_fields = fields
    show_change_link = True
    ordering = ("-number",)


@admin.register(Dataset)
class DatasetAdmin(ReadOnlyAdmin):
    """Datasets."""

    list_display = ("name", "role", "num_versions", "created_at", "created_by")
    list_filter = ("role",)
    search_fields = ("name",)
    ordering = ("name",)
    inlines = (DatasetVersionInline,)
    list_select_related = ("created_by",)

    @admin.display(description="versions", ordering="next_version_number")
    def num_versions(self, dataset: Dataset) -> int:
        """How many versions there are."""
        return dataset.next_version_number - 1


@admin.register(DatasetVersion)
class DatasetVersionAdmin(ReadOnlyAdmin):
    """Dataset versions."""

    list_display = ("name", "role", "num_examples", "verified", "digest", "created_at")
    list_filter = ("dataset__role", "dataset")
    search_fields = ("dataset__name", "artifact__digest")
    ordering = ("-created_at",)
    list_select_related = ("dataset",)

    @admin.display(description="version", ordering="dataset__name")
    def name(self, version: DatasetVersion) -> str:
        """Name and number."""
        return str(version)

    @admin.display(ordering="dataset__role")
    def role(self, version: DatasetVersion) -> str:
        """The dataset's role."""
        return version.dataset.role

    @admin.display(boolean=True)
    def verified(self, version: DatasetVersion) -> bool:
        """Whether every reference is verified."""
        return version.is_verified

    @admin.display(description="artifact")
    def digest(self, version: DatasetVersion) -> str:
        """The beginning of the artifact's digest."""
        return short_digest(version.artifact_id)
