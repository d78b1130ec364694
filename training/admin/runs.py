"""Training runs. A run's page shows curves and findings, what it was checked for and what became of it."""

import uuid
from typing import Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from unfold.decorators import action
from unfold.views import ChangeList

from registry.admin.base import ReadOnlyAdmin, actor_of
from registry.choices import TokenScope
from registry.errors import AssayError
from training.admin.following import status_answer
from training.admin.memory_page import PAGE as MEMORY_PAGE
from training.admin.memory_page import MemoryPage
from training.admin.messages import show_error
from training.admin.run_page import live_context, report_context
from training.errors import TrainingNotFound
from training.models import MetricPoint, OverfitPass, TrainingFinding, TrainingRun
from training.selectors.runs import get_training_run
from training.services.runs import cancel_training_run
from training.services.variations import VariationRequest, create_variation

TEMPLATE: Final = "admin/training/trainingrun/report.html"
LIVE_TEMPLATE: Final = "admin/training/trainingrun/_live.html"


class RunChangeList(ChangeList):  # type: ignore[misc]
    """The list of runs, whose lines lead to the page with the curves."""

    def url_for_result(self, result: TrainingRun) -> str:
        """The address of the run's page."""
        return reverse("admin:training_trainingrun_report", args=(result.pk,))


@admin.register(TrainingRun)
class TrainingRunAdmin(ReadOnlyAdmin):
    """Training runs and their pages."""

    list_display = ("name", "base_model", "purpose", "state", "created_at", "finished_at", "created_by")
    list_filter = ("state", "purpose", "base_model")
    search_fields = ("name", "id", "artifact__digest")
    ordering = ("-created_at",)
    list_select_related = ("base_model", "created_by")
    actions_list = ("open_memory_estimate",)

    @action(description="Memory estimate", url_path="open-memory-estimate", permissions=("view",))
    def open_memory_estimate(self, request: HttpRequest) -> HttpResponse:
        """The way from the list to the page that says what a training would need."""
        return redirect(MEMORY_PAGE)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose lines lead to the page with the curves."""
        return RunChangeList

    def get_urls(self) -> list[URLPattern]:
        """The page's addresses before Django's own, whose last pattern takes everything."""
        routes = (
            ("", self.show_report, "report"),
            ("status/", self.show_status, "status"),
            ("live/", self.show_live, "live"),
            ("cancel/", self.cancel, "cancel"),
            ("vary/", self.vary, "vary"),
        )
        own = [
            path(
                f"<uuid:run_id>/report/{route}",
                self.admin_site.admin_view(view),
                name=f"training_trainingrun_{name}",
            )
            for route, view, name in routes
        ]
        return own + MemoryPage(self).get_urls() + list(super().get_urls())

    def show_report(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """The page of one run."""
        run = self._visible_run(request, run_id)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "is_fullwidth": "1",
            **report_context(run, may_submit=actor_of(request).has_scope(TokenScope.SUBMIT)),
        }
        return render(request, TEMPLATE, context)

    def show_status(self, request: HttpRequest, run_id: uuid.UUID) -> JsonResponse:
        """How far the run is, for the page's script."""
        run = self._visible_run(request, run_id)
        return status_answer(run.state, run.job)

    def show_live(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """The part of the page with curves and findings alone, for its script."""
        return render(request, LIVE_TEMPLATE, live_context(self._visible_run(request, run_id)))

    def cancel(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Ends the run."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = self._visible_run(request, run_id)
        try:
            cancel_training_run(run=run, actor=actor_of(request))
            messages.success(request, "The training run was cancelled.")
        except AssayError as error:
            messages.error(request, error.detail)
        return redirect("admin:training_trainingrun_report", run_id=run.pk)

    def vary(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Begins a variation of the run and leads to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = self._visible_run(request, run_id)
        try:
            made = create_variation(
                run=run,
                request=VariationRequest(remedy=request.POST.get("remedy", "")),
                actor=actor_of(request),
            )
        except AssayError as error:
            show_error(request, error)
            return redirect("admin:training_trainingrun_report", run_id=run.pk)
        messages.success(request, f"{made.name} has begun: {made.note}")
        return redirect("admin:training_trainingrun_report", run_id=made.pk)

    def _visible_run(self, request: HttpRequest, run_id: uuid.UUID) -> TrainingRun:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return get_training_run(run_id)
        except TrainingNotFound as error:
            raise Http404 from error


@admin.register(MetricPoint)
class MetricPointAdmin(ReadOnlyAdmin):
    """Single points of curves, for looking up."""

    list_display = ("run", "name", "step", "value")
    list_filter = ("name",)
    search_fields = ("run__name", "run__id")
    ordering = ("-run__created_at", "name", "step")
    list_select_related = ("run",)
    show_full_result_count = False


@admin.register(TrainingFinding)
class TrainingFindingAdmin(ReadOnlyAdmin):
    """Findings of all runs: which symptoms come up, and how often."""

    list_display = ("code", "row", "severity", "step", "run")
    list_filter = ("severity", "row", "code")
    search_fields = ("run__name", "run__id", "code", "row")
    ordering = ("-run__created_at", "step", "pk")
    list_select_related = ("run",)


@admin.register(OverfitPass)
class OverfitPassAdmin(ReadOnlyAdmin):
    """Overfit tests that passed and are not repeated."""

    list_display = ("fingerprint", "base_model", "run", "passed_at")
    list_filter = ("base_model",)
    search_fields = ("fingerprint",)
    list_select_related = ("base_model", "run")
