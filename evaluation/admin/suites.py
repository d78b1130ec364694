"""Suites and policies: shown only, since a version never changes."""

from django.contrib import admin

from evaluation.models import Policy, Suite, SuiteDataset, SuiteVersion
from registry.admin.base import ReadOnlyAdmin, ReadOnlyInline, short_digest


class SuiteVersionInline(ReadOnlyInline):
    """The versions of a suite."""

    model = SuiteVersion
    fields = ("number", "digest", "created_at", "created_by")
    readonly_fields = fields
    show_change_link = True
    ordering = ("-number",)


class SuiteDatasetInline(ReadOnlyInline):
    """The four sets of a suite version."""

    model = SuiteDataset
    fields = ("role", "dataset_version")
    readonly_fields = fields


@admin.register(Suite)
class SuiteAdmin(ReadOnlyAdmin):
    """Suites."""

    list_display = ("name", "num_versions", "created_at", "created_by")
    search_fields = ("name",)
    ordering = ("name",)
    fields = ("name", "created_at", "created_by")
    inlines = (SuiteVersionInline,)

    @admin.display(description="versions", ordering="next_version_number")
    def num_versions(self, suite: Suite) -> int:
        """How many versions there are."""
        return suite.next_version_number - 1


@admin.register(SuiteVersion)
class SuiteVersionAdmin(ReadOnlyAdmin):
    """Suite versions with their definitions."""

    list_display = ("name", "short", "created_at", "created_by")
    search_fields = ("suite__name", "digest")
    ordering = ("-created_at",)
    list_select_related = ("suite", "created_by")
    inlines = (SuiteDatasetInline,)

    @admin.display(description="suite", ordering="suite__name")
    def name(self, version: SuiteVersion) -> str:
        """Name and number."""
        return str(version)

    @admin.display(description="digest")
    def short(self, version: SuiteVersion) -> str:
        """The beginning of the digest."""
        return short_digest(version.digest)


@admin.register(Policy)
class PolicyAdmin(ReadOnlyAdmin):
    """Policy versions with their rules."""

    list_display = ("reference", "short", "created_at", "created_by")
    search_fields = ("name", "digest")
    ordering = ("name", "-number")
    list_select_related = ("created_by",)

    @admin.display(description="policy", ordering="name")
    def reference(self, policy: Policy) -> str:
        """Name and number."""
        return str(policy)

    @admin.display(description="digest")
    def short(self, policy: Policy) -> str:
        """The beginning of the digest."""
        return short_digest(policy.digest)
