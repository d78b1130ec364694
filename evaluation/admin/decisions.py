"""Decisions and overrides: shown only. Overrides are asked for and confirmed on the report page."""

from django.contrib import admin

from evaluation.models import Decision, Override
from registry.admin.base import ReadOnlyAdmin, ReadOnlyInline


class OverrideInline(ReadOnlyInline):
    """Who set a decision aside, and why."""

    model = Override
    fields = ("reason", "created_by", "created_at", "confirmed_by", "confirmed_at")
    readonly_fields = fields


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    """Decisions."""

    list_display = ("run", "verdict", "policy", "summary", "created_at")
    list_filter = ("verdict", "policy")
    search_fields = ("run__version__adapter__name", "summary", "evidence_digest", "id")
    ordering = ("-created_at",)
    list_select_related = ("run__version__adapter", "run__suite_version__suite", "policy")
    inlines = (OverrideInline,)


@admin.register(Override)
class OverrideAdmin(ReadOnlyAdmin):
    """Overrides."""

    list_display = ("decision", "reason", "created_by", "created_at", "confirmed_by", "confirmed_at")
    list_filter = (("confirmed_at", admin.EmptyFieldListFilter),)
    search_fields = ("reason", "decision__run__version__adapter__name")
    ordering = ("-created_at",)
    list_select_related = ("decision", "created_by", "confirmed_by")
