"""The incident register: a page for each incident, and the quarterly review."""

from collections.abc import Callable
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import action
from unfold.views import ChangeList

from registry.admin.base import ReadOnlyAdmin, actor_of
from registry.choices import TokenScope
from registry.errors import AssayError
from registry.visible_text import visible_text
from training.admin.incident_page import build_incident_context, list_symptom_choices
from training.admin.messages import show_error
from training.errors import TrainingInvalid, TrainingNotFound
from training.models import Incident, IncidentEntry
from training.selectors.incidents import get_incident
from training.selectors.quarterly import review_quarter
from training.selectors.quarterly_markdown import word_duration, write_review
from training.selectors.quarters import parse_quarter, quarter_of
from training.services.incident_changes import (
    add_step,
    answer_check,
    begin_investigation,
    dismiss_incident,
    edit_incident,
    resolve_incident,
)
from training.services.incident_requests import IncidentRequest
from training.services.incidents import MAY_NOTE, open_incident

PAGE_TEMPLATE: Final = "admin/training/incident/page.html"
ADD_TEMPLATE: Final = "admin/training/incident/add.html"
QUARTERLY_TEMPLATE: Final = "admin/training/incident/quarterly.html"
MAX_LISTED_CHARACTERS: Final = 300
_TEXTS: Final = ("found", "cause", "fix")


class IncidentForm(forms.Form):
    """What people write of an incident. What is wrong with it is the service's to say, all of it at once."""

    title = forms.CharField(required=False)
    symptom = forms.CharField(required=False)
    training_run = forms.CharField(required=False)
    evaluation_run = forms.CharField(required=False)
    first_step = forms.IntegerField(required=False)
    found = forms.CharField(required=False, strip=False)
    cause = forms.CharField(required=False, strip=False)
    fix = forms.CharField(required=False, strip=False)

    def to_changes(self) -> dict[str, Any]:
        """The fields that may be edited; line ends become those of the data."""
        values = dict(self.cleaned_data)
        values |= {name: values[name].replace("\r\n", "\n") for name in _TEXTS}
        values["symptom"] = values["symptom"] or None
        del values["training_run"]
        return values


class IncidentChangeList(ChangeList):  # type: ignore[misc]
    """The list of incidents, whose lines lead to their pages."""

    def url_for_result(self, result: Incident) -> str:
        """The address of the incident's page."""
        return reverse("admin:training_incident_page", args=(result.number,))


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """Incidents and their pages."""

    list_display = (
        "number",
        "shown_title",
        "symptom",
        "state",
        "opened_by",
        "check_state",
        "opened_at",
        "closed_at",
    )
    list_display_links = ("number", "shown_title")
    list_filter = (
        "state",
        "asks_for_check",
        "check_answer",
        "opened_by",
        "symptom__symptom_class",
        "symptom",
    )
    search_fields = ("title", "symptom__code", "found", "cause", "fix", "fingerprint", "training_run__id")
    ordering = ("-number",)
    list_select_related = ("symptom", "training_run")
    actions_list = ("open_quarterly_review",)

    @admin.display(description="title", ordering="title")
    def shown_title(self, incident: Incident) -> SafeString:
        """The title, in which nothing hidden acts."""
        return visible_text(incident.title)

    @admin.display(description="check", ordering="asks_for_check")
    def check_state(self, incident: Incident) -> str | None:
        """What became of the question for a check; None where nothing is asked."""
        return (incident.check_answer or "asked for") if incident.asks_for_check else None

    @action(description="Quarterly review", url_path="open-quarterly-review", permissions=("view",))
    def open_quarterly_review(self, request: HttpRequest) -> HttpResponse:
        """The way from the list to the quarterly review."""
        return redirect("admin:training_incident_quarterly")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Whoever may submit or review."""
        return _may_note(request)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose lines lead to the incidents' pages."""
        return IncidentChangeList

    def get_urls(self) -> list[URLPattern]:
        """The pages' addresses before Django's own, whose last pattern takes everything."""
        routes: tuple[tuple[str, Callable[..., HttpResponse], str], ...] = (
            ("quarterly/", self.show_quarter, "quarterly"),
            ("quarterly/report.md", self.download_quarter, "quarterly_report"),
            ("<int:number>/page/", self.show_page, "page"),
            ("<int:number>/page/step/", self.add_step, "step"),
            ("<int:number>/page/investigate/", self.investigate, "investigate"),
            ("<int:number>/page/resolve/", self.resolve, "resolve"),
            ("<int:number>/page/dismiss/", self.dismiss, "dismiss"),
            ("<int:number>/page/check/", self.answer_check, "check"),
        )
        view = self.admin_site.admin_view
        own = [path(route, view(call), name=f"training_incident_{name}") for route, call, name in routes]
        return own + list(super().get_urls())

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Opens an incident by hand; `?training_run=` names its run."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        is_post = request.method == "POST"
        form = IncidentForm(request.POST if is_post else None, initial=request.GET.dict())
        status = 200
        if is_post and form.is_valid():
            given = IncidentRequest(
                **form.to_changes(), training_run=form.cleaned_data["training_run"].strip()
            )
            try:
                incident = open_incident(request=given, actor=actor_of(request))
            except AssayError as error:
                show_error(request, error)
                status = error.status
            else:
                messages.success(request, f"Incident #{incident.number} is open.")
                return redirect("admin:training_incident_page", number=incident.number)
        context = {
            "title": "Open an incident",
            "form": form,
            "values": {field.name: field.value() for field in form},
            "symptom_choices": list_symptom_choices(),
        }
        return self._render(request, ADD_TEMPLATE, context, status=status)

    def show_page(self, request: HttpRequest, number: int) -> HttpResponse:
        """Shows an incident; a POST changes what is known of it."""
        incident = self._visible_incident(request, number)
        if request.method != "POST":
            return self._show(request, incident)
        form = IncidentForm(request.POST)
        if not form.is_valid():
            return self._show(request, incident, draft=request.POST.dict(), status=422)
        try:
            edit_incident(
                incident=incident,
                changes=form.to_changes(),
                expected_revision=_revision(request),
                actor=actor_of(request),
            )
        except AssayError as error:
            show_error(request, error)
            now = get_incident(number)
            return self._show(request, now, draft=request.POST.dict(), status=error.status)
        messages.success(request, "The incident is changed.")
        return redirect("admin:training_incident_page", number=number)

    def add_step(self, request: HttpRequest, number: int) -> HttpResponse:
        """Notes a step that was taken."""
        return self._do(
            request,
            number,
            lambda incident: add_step(
                incident=incident, text=_text(request, "text"), actor=actor_of(request)
            ),
        )

    def investigate(self, request: HttpRequest, number: int) -> HttpResponse:
        """Says that somebody looks into it."""
        return self._do(
            request,
            number,
            lambda incident: begin_investigation(
                incident=incident, expected_revision=_revision(request), actor=actor_of(request)
            ),
        )

    def resolve(self, request: HttpRequest, number: int) -> HttpResponse:
        """Closes it with cause and fix."""
        return self._do(
            request,
            number,
            lambda incident: resolve_incident(
                incident=incident,
                cause=_text(request, "cause"),
                fix=_text(request, "fix"),
                expected_revision=_revision(request),
                actor=actor_of(request),
            ),
        )

    def dismiss(self, request: HttpRequest, number: int) -> HttpResponse:
        """Closes what was no incident."""
        return self._do(
            request,
            number,
            lambda incident: dismiss_incident(
                incident=incident,
                reason=_text(request, "reason"),
                expected_revision=_revision(request),
                actor=actor_of(request),
            ),
        )

    def answer_check(self, request: HttpRequest, number: int) -> HttpResponse:
        """Answers the question for a check."""
        return self._do(
            request,
            number,
            lambda incident: answer_check(
                incident=incident,
                answer=request.POST.get("answer", ""),
                text=_text(request, "text"),
                expected_revision=_revision(request),
                actor=actor_of(request),
            ),
        )

    def show_quarter(self, request: HttpRequest) -> HttpResponse:
        """The review of a quarter; the present one when none is named."""
        self._require_view(request)
        now = quarter_of(timezone.now())
        quarter = now
        if text := request.GET.get("quarter"):
            try:
                quarter = parse_quarter(text)
            except TrainingInvalid as error:
                show_error(request, error)
        review = review_quarter(quarter)
        context = {
            "title": f"Incidents of {quarter}",
            "review": review,
            "median": word_duration(review.median_seconds_to_resolve),
            "following": quarter.following if quarter < now else None,
        }
        return self._render(request, QUARTERLY_TEMPLATE, context)

    def download_quarter(self, request: HttpRequest) -> HttpResponse:
        """The review as a Markdown file."""
        self._require_view(request)
        try:
            quarter = parse_quarter(request.GET.get("quarter", ""))
        except TrainingInvalid as error:
            raise Http404 from error
        headers = {
            "Content-Disposition": f'attachment; filename="incidents-{quarter}.md"',
            "X-Content-Type-Options": "nosniff",
        }
        content = write_review(review_quarter(quarter)).encode()
        return HttpResponse(content, content_type="text/markdown; charset=utf-8", headers=headers)

    def _do(self, request: HttpRequest, number: int, do: Callable[[Incident], object]) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        incident = self._visible_incident(request, number)
        try:
            do(incident)
        except AssayError as error:
            show_error(request, error)
            now = get_incident(number)
            return self._show(request, now, draft=request.POST.dict(), status=error.status)
        return redirect("admin:training_incident_page", number=number)

    def _show(
        self,
        request: HttpRequest,
        incident: Incident,
        *,
        draft: dict[str, Any] | None = None,
        status: int = 200,
    ) -> HttpResponse:
        context = {
            **build_incident_context(incident, draft or {}),
            "title": f"Incident #{incident.number}",
            "user_may_note": _may_note(request),
            "user_may_close": actor_of(request).has_scope(TokenScope.REVIEW),
        }
        return self._render(request, PAGE_TEMPLATE, context, status=status)

    def _render(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
    ) -> HttpResponse:
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "is_fullwidth": "1"}
        return render(request, template, {**shared, **context}, status=status)

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _visible_incident(self, request: HttpRequest, number: int) -> Incident:
        self._require_view(request)
        try:
            return get_incident(number)
        except TrainingNotFound as error:
            raise Http404 from error


@admin.register(IncidentEntry)
class IncidentEntryAdmin(ReadOnlyAdmin):
    """Single lines of logs, for looking up."""

    list_display = ("number", "at", "actor", "kind", "detector", "shown_text")
    list_filter = ("kind", "detector")
    search_fields = ("text", "actor", "incident__title")
    ordering = ("-pk",)
    show_full_result_count = False

    @admin.display(description="incident", ordering="incident")
    def number(self, entry: IncidentEntry) -> str:
        """Whose line it is."""
        return f"#{entry.incident_id}"

    @admin.display(description="text")
    def shown_text(self, entry: IncidentEntry) -> SafeString:
        """The text, in which nothing hidden acts."""
        return visible_text(entry.text, limit=MAX_LISTED_CHARACTERS)


def _may_note(request: HttpRequest) -> bool:
    return any(actor_of(request).has_scope(scope) for scope in MAY_NOTE)


def _text(request: HttpRequest, name: str) -> str:
    """A form sends line breaks as CR LF."""
    return request.POST.get(name, "").replace("\r\n", "\n")


def _revision(request: HttpRequest) -> int:
    """The incident as the person saw it; a page without it is that of no revision."""
    text = request.POST.get("revision", "")
    return int(text[:9]) if text.isascii() and text.isdigit() else 2**31 - 1
