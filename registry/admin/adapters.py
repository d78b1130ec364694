"""Base models, adapters and their versions."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from registry.admin.base import ReadOnlyAdmin, ReadOnlyInline, actor_of, short_digest
from registry.choices import TokenScope
from registry.models import Adapter, AdapterVersion, BaseModel

MEMORY_PAGE = "admin:training_memory_estimate"
"""The registry knows the address by its name alone: it stands below the apps that use it."""


@admin.register(BaseModel)
class BaseModelAdmin(ReadOnlyAdmin):
    """Base models."""

    list_display = ("name", "architecture", "num_parameters", "dtype", "digest", "created_at")
    list_filter = ("architecture", "dtype")
    search_fields = ("name", "source", "artifact__digest")
    ordering = ("name",)
    readonly_fields = ("memory",)

    @admin.display(description="memory of a training")
    def memory(self, model: BaseModel) -> SafeString | str:
        """The way to the page that estimates it, where an app has one."""
        try:
            address = reverse(MEMORY_PAGE)
        except NoReverseMatch:
            return ""
        query = urlencode({"base_model": model.name})
        link = '<a class="text-primary-600 dark:text-primary-500" href="{}?{}">{}</a>'
        return format_html(link, address, query, f"Memory estimate for {model.name}")

    @admin.display(description="artifact")
    def digest(self, model: BaseModel) -> str:
        """The beginning of the artifact's digest."""
        return short_digest(model.artifact_id)


class AdapterVersionInline(ReadOnlyInline):
    """The versions of an adapter."""

    model = AdapterVersion
    fields = ("number", "base_model", "state", "created_at", "created_by")
    readonly_fields = fields
    show_change_link = True
    ordering = ("-number",)


@admin.register(Adapter)
class AdapterAdmin(ReadOnlyAdmin):
    """Adapters. Only the description, which is for people, may be written."""

    list_display = ("name", "description", "num_versions", "created_at", "created_by")
    search_fields = ("name", "description")
    ordering = ("name",)
    fields = ("name", "description", "created_at", "created_by")
    readonly_fields = ("name", "created_at", "created_by")
    inlines = (AdapterVersionInline,)
    list_select_related = ("created_by",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may submit."""
        return actor_of(request).has_scope(TokenScope.SUBMIT)

    @admin.display(description="versions", ordering="next_version_number")
    def num_versions(self, adapter: Adapter) -> int:
        """How many versions there are."""
        return adapter.next_version_number - 1


@admin.register(AdapterVersion)
class AdapterVersionAdmin(ReadOnlyAdmin):
    """Adapter versions; their state follows the pipeline."""

    list_display = ("name", "base_model", "state", "digest", "created_at", "created_by")
    list_filter = ("state", "base_model", "adapter")
    search_fields = ("adapter__name", "artifact__digest", "notes", "id")
    ordering = ("-created_at",)
    list_select_related = ("adapter", "base_model", "created_by")

    @admin.display(description="version", ordering="adapter__name")
    def name(self, version: AdapterVersion) -> str:
        """Name and number."""
        return str(version)

    @admin.display(description="artifact")
    def digest(self, version: AdapterVersion) -> str:
        """The beginning of the artifact's digest."""
        return short_digest(version.artifact_id)
