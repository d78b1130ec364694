"""Data preparations. A preparation's page is the dataset card: from raw files to sets, with every step."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from unfold.views import ChangeList

from registry.admin.base import ReadOnlyAdmin, ReadOnlyInline, actor_of
from registry.api.streaming import stream_file
from registry.choices import TokenScope
from registry.errors import AssayError
from registry.services.actors import Actor
from registry.services.artifacts import get_file_entry, open_blob
from training.admin.following import job_context, status_answer
from training.admin.messages import show_error
from training.admin.preparation_page import build_report_context
from training.admin.version_page import VersionPages
from training.choices import ACTIVE_PREPARATION_STATES, PreparationState
from training.errors import TrainingNotFound
from training.models import DataPreparation, PreparedSet
from training.selectors.preparations import (
    BAD_ROWS_FILE,
    CARD_FILE,
    DROPPED_FILE,
    REPORT_FILE,
    get_preparation,
)
from training.services.preparations import cancel_preparation, retry_preparation

TEMPLATE: Final = "admin/training/datapreparation/report.html"
FILES: Final[Mapping[str, str]] = {
    "report": REPORT_FILE,
    "card": CARD_FILE,
    "dropped": DROPPED_FILE,
    "bad-rows": BAD_ROWS_FILE,
}
"""What may be downloaded from the page: a word of the address to a file of the job's output."""


class PreparationChangeList(ChangeList):  # type: ignore[misc]
    """The list of preparations, whose lines lead to the page with the card."""

    def url_for_result(self, result: DataPreparation) -> str:
        """The address of the preparation's page."""
        return reverse("admin:training_datapreparation_report", args=(result.pk,))


class PreparedSetInline(ReadOnlyInline):
    """The sets of a preparation."""

    model = PreparedSet
    fields = ("role", "dataset_version", "num_examples")
    readonly_fields = fields


@admin.register(DataPreparation)
class DataPreparationAdmin(ReadOnlyAdmin):
    """Data preparations and their pages."""

    list_display = ("name", "raw", "state", "created_at", "finished_at", "created_by")
    list_filter = ("state", "raw__name")
    search_fields = ("name", "id", "raw__name", "raw__artifact__digest")
    ordering = ("-created_at",)
    list_select_related = ("raw", "created_by")
    inlines = (PreparedSetInline,)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose lines lead to the page with the card."""
        return PreparationChangeList

    def get_urls(self) -> list[URLPattern]:
        """The pages' addresses before Django's own, whose last pattern takes everything."""
        routes: tuple[tuple[str, Callable[..., HttpResponseBase], str], ...] = (
            ("", self.show_report, "report"),
            ("status/", self.show_status, "status"),
            ("cancel/", self.cancel, "cancel"),
            ("retry/", self.retry, "retry"),
            ("files/<slug:file>/", self.download, "file"),
        )
        own = [
            path(
                f"<uuid:preparation_id>/report/{route}",
                self.admin_site.admin_view(view),
                name=f"training_datapreparation_{name}",
            )
            for route, view, name in routes
        ]
        return own + VersionPages(self).get_urls() + list(super().get_urls())

    def show_report(self, request: HttpRequest, preparation_id: uuid.UUID) -> HttpResponse:
        """The page of one preparation."""
        row, actor = self._visible_row(request, preparation_id), actor_of(request)
        context = {
            **self.admin_site.each_context(request),
            **job_context(row.job),
            **build_report_context(row),
            "title": f"Data preparation {row.name}",
            "opts": self.opts,
            "is_fullwidth": "1",
            "preparation": row,
            "files": tuple(FILES) if row.report_id else (),
            "user_may_cancel": row.state in ACTIVE_PREPARATION_STATES and may_prepare(actor),
            "user_may_retry": row.state in (PreparationState.FAILED, PreparationState.CANCELLED)
            and may_prepare(actor),
            "user_may_review": actor.has_scope(TokenScope.REVIEW),
        }
        return render(request, TEMPLATE, context)

    def show_status(self, request: HttpRequest, preparation_id: uuid.UUID) -> JsonResponse:
        """How far the preparation is, for the page's script."""
        row = self._visible_row(request, preparation_id)
        return status_answer(row.state, row.job)

    def download(self, request: HttpRequest, preparation_id: uuid.UUID, file: str) -> HttpResponseBase:
        """One file that the job wrote, as an attachment."""
        row = self._visible_row(request, preparation_id)
        if file not in FILES or row.report_id is None:
            raise Http404
        entry = get_file_entry(digest=row.report_id, path=FILES[file])
        name = f"{row.name}-{entry.path}"
        return stream_file(
            request, open_blob(entry.sha256), size_bytes=entry.size_bytes, etag=entry.sha256, name=name
        )

    def cancel(self, request: HttpRequest, preparation_id: uuid.UUID) -> HttpResponse:
        """Ends the preparation."""
        return self._do(request, preparation_id, cancel_preparation, "The preparation was cancelled.")

    def retry(self, request: HttpRequest, preparation_id: uuid.UUID) -> HttpResponse:
        """Begins the preparation again."""
        return self._do(request, preparation_id, retry_preparation, "The preparation was begun again.")

    def _do(
        self, request: HttpRequest, preparation_id: uuid.UUID, do: Callable[..., object], message: str
    ) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self._visible_row(request, preparation_id)
        try:
            do(preparation=row, actor=actor_of(request))
            messages.success(request, message)
        except AssayError as error:
            show_error(request, error)
        return redirect("admin:training_datapreparation_report", preparation_id=row.pk)

    def _visible_row(self, request: HttpRequest, preparation_id: uuid.UUID) -> DataPreparation:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return get_preparation(preparation_id)
        except TrainingNotFound as error:
            raise Http404 from error


def may_prepare(actor: Actor) -> bool:
    """Whether the actor may begin and end preparations."""
    return actor.has_scope(TokenScope.SUBMIT) or actor.has_scope(TokenScope.EVALUATE)
