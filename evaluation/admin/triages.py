"""Triages: the verdict with its samples, and one sample at a time, confirmed by key or button."""

import uuid
from collections.abc import Callable
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from unfold.decorators import display
from unfold.views import ChangeList

from evaluation.admin.triage_page import ADVICE_LABELS, build_item_context, build_report_context
from evaluation.choices import ACTIVE_TRIAGE_STATES
from evaluation.errors import EvaluationNotFound, TriageItemChanged
from evaluation.models import Triage, TriageItem
from evaluation.selectors.triages import (
    find_latest_word_of,
    find_next_open_position,
    get_triage,
    get_triage_item,
    is_open,
)
from evaluation.services.triage_words import MAX_NOTE_CHARACTERS, close_triage, confirm_item
from evaluation.services.triages import cancel_triage
from registry.admin.base import ReadOnlyAdmin, actor_of
from registry.choices import ACTIVE_JOB_STATES, TokenScope
from registry.errors import AssayError
from registry.models import Job

TEMPLATE: Final = "admin/evaluation/triage/report.html"
ITEM_TEMPLATE: Final = "admin/evaluation/triage/item.html"


class WordForm(forms.Form):
    """What a person says of a sample; `revision` is the sample as the person saw it."""

    kind = forms.CharField(max_length=64, required=False)
    revision = forms.IntegerField(min_value=0)
    note = forms.CharField(required=False, max_length=MAX_NOTE_CHARACTERS)


class TriageChangeList(ChangeList):  # type: ignore[misc]
    """The list of triages, whose lines lead to the page with the verdict."""

    def url_for_result(self, result: Triage) -> str:
        """The address of the triage's page."""
        return reverse("admin:evaluation_triage_report", args=(result.pk,))


@admin.register(Triage)
class TriageAdmin(ReadOnlyAdmin):
    """Triages and their pages."""

    list_display = ("name", "base_model", "state", "advice", "num_samples", "created_at", "created_by")
    list_filter = ("state", "base_model")
    search_fields = ("name", "id", "base_model__name")
    ordering = ("-created_at",)
    list_select_related = ("base_model", "created_by")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose lines lead to the page with the verdict."""
        return TriageChangeList

    @display(description="verdict")
    def advice(self, triage: Triage) -> str | None:
        """The stored verdict in one word; None before the triage is closed."""
        return ADVICE_LABELS.get(triage.verdict["advice"]) if triage.verdict else None

    def get_urls(self) -> list[URLPattern]:
        """The pages' addresses before Django's own, whose last pattern takes everything."""
        routes: tuple[tuple[str, Callable[..., HttpResponseBase], str], ...] = (
            ("", self.show_report, "report"),
            ("status/", self.show_status, "status"),
            ("next/", self.show_next, "next"),
            ("undo/", self.undo, "undo"),
            ("close/", self.close, "close"),
            ("cancel/", self.cancel, "cancel"),
            ("samples/<int:position>/", self.show_item, "item"),
        )
        own = [
            path(
                f"<uuid:triage_id>/report/{route}",
                self.admin_site.admin_view(view),
                name=f"evaluation_triage_{name}",
            )
            for route, view, name in routes
        ]
        return own + list(super().get_urls())

    def show_report(self, request: HttpRequest, triage_id: uuid.UUID) -> HttpResponse:
        """The page of one triage."""
        triage, actor = self._visible_triage(request, triage_id), actor_of(request)
        job = _active_job(triage)
        context = {
            **self.admin_site.each_context(request),
            **build_report_context(triage),
            "title": f"Triage {triage.name}",
            "opts": self.opts,
            "is_fullwidth": "1",
            "job": job,
            "job_percent": round(100 * job.fraction) if job else 0,
            "user_may_cancel": triage.state in ACTIVE_TRIAGE_STATES and actor.has_scope(TokenScope.EVALUATE),
            "user_may_confirm": is_open(triage) and actor.has_scope(TokenScope.REVIEW),
        }
        return render(request, TEMPLATE, context)

    def show_status(self, request: HttpRequest, triage_id: uuid.UUID) -> JsonResponse:
        """How far the triage is, for the page's script."""
        triage = self._visible_triage(request, triage_id)
        job = _active_job(triage)
        shown = None
        if job is not None:
            shown = {
                "kind": job.kind,
                "state": job.state,
                "fraction": job.fraction,
                "message": job.message,
            }
        return JsonResponse({"state": triage.state, "is_final": job is None, "job": shown})

    def show_next(self, request: HttpRequest, triage_id: uuid.UUID) -> HttpResponse:
        """Leads to the first sample that waits for a person, or to the first one."""
        triage = self._visible_triage(request, triage_id)
        position = find_next_open_position(triage, after=0) or 1
        return redirect("admin:evaluation_triage_item", triage_id=triage.pk, position=position)

    def show_item(self, request: HttpRequest, triage_id: uuid.UUID, position: int) -> HttpResponse:
        """Shows one sample; a POST says what it lacks and leads to the next one."""
        triage = self._visible_triage(request, triage_id)
        try:
            item = get_triage_item(triage, position)
        except EvaluationNotFound as error:
            raise Http404 from error
        if request.method != "POST":
            return self._render_item(request, triage, item)
        return self._confirm(request, triage, item)

    def undo(self, request: HttpRequest, triage_id: uuid.UUID) -> HttpResponse:
        """Takes back what the person said last in this triage and leads to that sample."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        triage, actor = self._visible_triage(request, triage_id), actor_of(request)
        item = None if actor.user is None else find_latest_word_of(triage, actor.user)
        if item is None:
            messages.info(request, "You have confirmed nothing in this triage that could be taken back.")
            return redirect("admin:evaluation_triage_next", triage_id=triage.pk)
        try:
            confirm_item(
                triage=triage,
                position=item.position,
                kind="",
                expected_revision=item.revision,
                actor=actor,
            )
        except AssayError as error:
            _show_error(request, error)
        return redirect("admin:evaluation_triage_item", triage_id=triage.pk, position=item.position)

    def close(self, request: HttpRequest, triage_id: uuid.UUID) -> HttpResponse:
        """Stores the verdict."""
        return self._do(
            request,
            triage_id,
            lambda triage: close_triage(
                triage=triage,
                actor=actor_of(request),
                allow_unconfirmed=request.POST.get("allow_unconfirmed") == "on",
            ),
            "The triage is closed; its verdict is stored.",
        )

    def cancel(self, request: HttpRequest, triage_id: uuid.UUID) -> HttpResponse:
        """Ends the triage."""
        return self._do(
            request,
            triage_id,
            lambda triage: cancel_triage(triage=triage, actor=actor_of(request)),
            "The triage was cancelled.",
        )

    def _do(
        self, request: HttpRequest, triage_id: uuid.UUID, do: Callable[[Triage], object], message: str
    ) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        triage = self._visible_triage(request, triage_id)
        try:
            do(triage)
            messages.success(request, message)
        except AssayError as error:
            _show_error(request, error)
        return redirect("admin:evaluation_triage_report", triage_id=triage.pk)

    def _confirm(self, request: HttpRequest, triage: Triage, item: TriageItem) -> HttpResponse:
        form = WordForm(request.POST)
        if not form.is_valid():
            for name, errors in form.errors.items():
                messages.error(request, f"{name}: {' '.join(map(str, errors))}")
            return self._render_item(request, triage, item, draft=request.POST, status=422)
        values = form.cleaned_data
        try:
            confirm_item(
                triage=triage,
                position=item.position,
                kind=values["kind"],
                # A form sends line breaks as CR LF.
                note=values["note"].replace("\r\n", "\n"),
                expected_revision=values["revision"],
                actor=actor_of(request),
            )
        except AssayError as error:
            # The page itself tells of a conflict, beside what the person has written.
            is_conflict = isinstance(error, TriageItemChanged)
            if not is_conflict:
                _show_error(request, error)
            changed = get_triage_item(triage, item.position)
            return self._render_item(
                request, triage, changed, draft=values, is_conflict=is_conflict, status=error.status
            )
        if not values["kind"]:
            return redirect("admin:evaluation_triage_item", triage_id=triage.pk, position=item.position)
        following = find_next_open_position(triage, after=item.position)
        if following is None:
            messages.success(request, "Every failure is confirmed; the triage can be closed.")
            return redirect("admin:evaluation_triage_report", triage_id=triage.pk)
        return redirect("admin:evaluation_triage_item", triage_id=triage.pk, position=following)

    def _render_item(
        self,
        request: HttpRequest,
        triage: Triage,
        item: TriageItem,
        *,
        draft: Any = None,
        is_conflict: bool = False,
        status: int = 200,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            **build_item_context(triage, item, draft or {}),
            "title": f"Triage {triage.name}",
            "opts": self.opts,
            "is_fullwidth": "1",
            "is_conflict": is_conflict,
            "user_may_confirm": is_open(triage) and actor_of(request).has_scope(TokenScope.REVIEW),
        }
        return render(request, ITEM_TEMPLATE, context, status=status)

    def _visible_triage(self, request: HttpRequest, triage_id: uuid.UUID) -> Triage:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return get_triage(triage_id)
        except EvaluationNotFound as error:
            raise Http404 from error


@admin.register(TriageItem)
class TriageItemAdmin(ReadOnlyAdmin):
    """Single samples, for looking up."""

    list_display = (
        "sample_id",
        "triage",
        "position",
        "outcome",
        "rule_kind",
        "confirmed_kind",
        "confirmed_by",
    )
    list_filter = ("outcome", "rule_kind", "confirmed_kind")
    search_fields = ("sample_id", "triage__name")
    ordering = ("-triage__created_at", "position")
    list_select_related = ("triage__base_model", "confirmed_by")
    show_full_result_count = False


def _active_job(triage: Triage) -> Job | None:
    job = triage.job
    return job if job is not None and job.state in ACTIVE_JOB_STATES else None


def _show_error(request: HttpRequest, error: AssayError) -> None:
    messages.error(request, error.detail)
    for fault in error.faults:
        if fault.message not in error.detail:
            text = f"{fault.where}: {fault.message}" if fault.where else fault.message
            messages.warning(request, f"{text} {fault.remedy}" if fault.remedy else text)
