"""Evaluation runs. A run's page is its report; everything else about it is shown only."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern, path, reverse
from unfold.decorators import display
from unfold.views import ChangeList

from evaluation.admin.report.actions import ReportActions
from evaluation.admin.report.page import ReportPages
from evaluation.choices import Verdict
from evaluation.models import EvaluationRun, ExampleResult
from registry.admin.base import ReadOnlyAdmin

VERDICT_COLOURS = {
    Verdict.PASSED.value: "success",
    Verdict.REJECTED.value: "danger",
    Verdict.INCONCLUSIVE.value: "warning",
}


class RunChangeList(ChangeList):  # type: ignore[misc]
    """The list of runs, whose lines lead to the report."""

    def url_for_result(self, result: EvaluationRun) -> str:
        """The address of the run's report."""
        return reverse("admin:evaluation_evaluationrun_report", args=(result.pk,))


@admin.register(EvaluationRun)
class EvaluationRunAdmin(ReadOnlyAdmin):
    """Evaluation runs and their report pages."""

    list_display = ("name", "subject", "suite_version", "policy", "form", "state", "verdict", "created_at")
    list_filter = ("subject", "state", "decision__verdict", "suite_version", "base_model")
    search_fields = ("version__adapter__name", "suite_version__suite__name", "base_model__name", "id")
    ordering = ("-created_at",)
    list_select_related = ("version__adapter", "base_model", "suite_version__suite", "policy", "decision")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose lines lead to the report."""
        return RunChangeList

    @admin.display(description="run", ordering="version__adapter__name")
    def name(self, run: EvaluationRun) -> str:
        """What is evaluated."""
        return str(run.version or run.base_model)

    @display(description="verdict", ordering="decision__verdict", label=VERDICT_COLOURS)
    def verdict(self, run: EvaluationRun) -> str | None:
        """What the rules say; None before."""
        return run.decision.verdict if hasattr(run, "decision") else None

    def get_urls(self) -> list[URLPattern]:
        """The report's addresses before Django's own, whose last pattern takes everything."""
        pages, actions = ReportPages(self), ReportActions(self)
        routes = (
            ("", pages.show_report, "report"),
            ("examples/", pages.show_examples, "examples"),
            ("status/", pages.show_status, "status"),
            ("promote/", actions.promote, "promote"),
            ("rollback/", actions.roll_back, "rollback"),
            ("override/", actions.request_override, "override"),
            ("override/confirm/", actions.confirm_override, "confirm_override"),
            ("cancel/", actions.cancel, "cancel"),
            ("retry/", actions.retry, "retry"),
            ("recompute/", actions.recompute, "recompute"),
        )
        own = [
            path(
                f"<uuid:run_id>/report/{route}",
                self.admin_site.admin_view(view),
                name=f"evaluation_evaluationrun_{name}",
            )
            for route, view, name in routes
        ]
        return own + list(super().get_urls())


@admin.register(ExampleResult)
class ExampleResultAdmin(ReadOnlyAdmin):
    """Single results, for looking up by id; the report page is made for reading them."""

    list_display = ("example_id", "run_name", "role", "form", "dimension", "is_passed", "score", "parse")
    list_filter = ("role", "form", "is_passed", "parse", "dimension")
    search_fields = ("example_id", "prompt", "output", "reference")
    ordering = ("-run__created_at", "position")
    list_select_related = ("run__version__adapter", "run__base_model", "run__suite_version__suite")
    show_full_result_count = False

    @admin.display(description="run")
    def run_name(self, result: ExampleResult) -> str:
        """The run."""
        return str(result.run)
