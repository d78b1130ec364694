"""Datasets and their versions."""

from django.contrib import admin
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from registry.admin.base import ReadOnlyAdmin, ReadOnlyInline, short_digest
from registry.models import Dataset, DatasetVersion

VERSION_PAGE = "admin:training_datasetversion_card"
"""The registry knows the address by its name alone: it stands below the apps that use it."""


class DatasetVersionInline(ReadOnlyInline):
    """The versions of a dataset."""

    model = DatasetVersion
    fields = ("number", "num_examples", "num_verified", "num_reviewed", "num_bad", "artifact", "created_at")
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

    list_display = ("name", "role", "num_examples", "verified", "reviewed", "digest", "created_at")
    list_filter = ("dataset__role", "dataset")
    search_fields = ("dataset__name", "artifact__digest")
    ordering = ("-created_at",)
    list_select_related = ("dataset",)
    fields = (
        *("dataset", "number", "page", "artifact", "num_examples", "num_verified"),
        *("num_reviewed", "num_bad", "num_to_fix", "created_at", "created_by"),
    )
    readonly_fields = fields

    @admin.display(description="card and reviews")
    def page(self, version: DatasetVersion) -> SafeString | str:
        """The way to the page that shows the card and the reviews, where an app has one."""
        try:
            address = reverse(VERSION_PAGE, args=(version.pk,))
        except NoReverseMatch:
            return ""
        text = f"Card and reviews of {version}"
        return format_html('<a class="text-primary-600 underline" href="{}">{}</a>', address, text)

    @admin.display(description="reviewed", ordering="num_reviewed")
    def reviewed(self, version: DatasetVersion) -> str:
        """How many examples people have looked at, and how many of them are bad."""
        return f"{version.num_reviewed}, {version.num_bad} bad" if version.num_reviewed else ""

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
