"""The handbook: a page for each row, on which people write it in both languages."""

from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from registry.admin.base import ReadOnlyAdmin, actor_of
from registry.choices import TokenScope
from registry.errors import AssayError
from registry.visible_text import visible_text
from training.admin.messages import show_error
from training.choices import HandbookLanguage
from training.engine.handbook.rows import HandbookRow, SymptomClass
from training.errors import TrainingNotFound
from training.models import Symptom
from training.selectors.handbook import get_symptom, list_symptoms, name_symptom
from training.selectors.incidents import list_incidents
from training.services.handbook import add_row, edit_row, read_draft, restore_row
from training.services.handbook_drafts import RowDraft, TextDraft

TEMPLATE: Final = "admin/training/symptom/page.html"
MAX_SHOWN_INCIDENTS: Final = 20
_TEXT_FIELDS: Final = ("symptom", "causes", "treatment", "source")


class SymptomForm(forms.Form):
    """A row as the page sends it; lists are one line for each item. `revision` is the row as it was seen.

    Only the form of things is checked here; what a row must hold is the service's to say, all of it at once.
    """

    code = forms.CharField(required=False)
    symptom_class = forms.ChoiceField(choices=[(item.value, item.value) for item in SymptomClass])
    detectors = forms.CharField(required=False)
    revision = forms.IntegerField(required=False, min_value=0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Adds the texts of each language."""
        super().__init__(*args, **kwargs)
        for language in HandbookLanguage.values:
            for name in _TEXT_FIELDS:
                self.fields[f"{name}_{language}"] = forms.CharField(required=False)

    def to_draft(self, code: str) -> RowDraft:
        """The row that was written; a language in which nothing was written has no text."""
        texts = {language: self._read_text(language) for language in HandbookLanguage.values}
        return RowDraft(
            code=code,
            symptom_class=self.cleaned_data["symptom_class"],
            detectors=_lines(self.cleaned_data["detectors"]),
            texts={language: text for language, text in texts.items() if text is not None},
        )

    def _read_text(self, language: str) -> TextDraft | None:
        values = {name: self.cleaned_data[f"{name}_{language}"] for name in _TEXT_FIELDS}
        if not any(values.values()):
            return None
        return TextDraft(
            symptom=values["symptom"].strip(),
            causes=_lines(values["causes"]),
            treatment=_lines(values["treatment"]),
            source=values["source"].strip(),
        )


class SymptomChangeList(ChangeList):  # type: ignore[misc]
    """The list of rows, whose lines lead to their pages."""

    def url_for_result(self, result: Symptom) -> str:
        """The address of the row's page."""
        return reverse("admin:training_symptom_page", args=(result.code,))


@admin.register(Symptom)
class SymptomAdmin(ReadOnlyAdmin):
    """The rows of the handbook and their pages."""

    list_display = ("code", "seen", "symptom_class", "origin", "is_edited", "num_incidents")
    list_filter = ("symptom_class", "origin")
    search_fields = ("code", "texts__symptom", "texts__causes", "texts__treatment")
    ordering = ("position", "code")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Symptom]:
        """The rows with their counts of incidents."""
        return list_symptoms()

    @admin.display(description="symptom")
    def seen(self, row: Symptom) -> SafeString:
        """What is seen."""
        return visible_text(name_symptom(row))

    @admin.display(description="edited", boolean=True)
    def is_edited(self, row: Symptom) -> bool:
        """Whether people wrote it."""
        return row.edited_at is not None

    @admin.display(description="incidents", ordering="num_incidents")
    def num_incidents(self, row: Symptom) -> int:
        """How often it occurred."""
        num: int = row.num_incidents  # type: ignore[attr-defined]  # annotated by the selector
        return num

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Whoever may review."""
        return actor_of(request).has_scope(TokenScope.REVIEW)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose lines lead to the rows' pages."""
        return SymptomChangeList

    def get_urls(self) -> list[URLPattern]:
        """The pages' addresses before Django's own, whose last pattern takes everything."""
        view = self.admin_site.admin_view
        own = [
            path("row/<slug:code>/", view(self.show_page), name="training_symptom_page"),
            path("row/<slug:code>/restore/", view(self.restore), name="training_symptom_restore"),
        ]
        return own + list(super().get_urls())

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Adds a row of the people of this server."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = SymptomForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                row = add_row(draft=form.to_draft(form.cleaned_data["code"].strip()), actor=actor_of(request))
            except AssayError as error:
                show_error(request, error)
                return self._render(request, None, form, status=error.status)
            messages.success(request, f"Row {row.code} is part of the handbook.")
            return redirect("admin:training_symptom_page", code=row.code)
        return self._render(request, None, form)

    def show_page(self, request: HttpRequest, code: str) -> HttpResponse:
        """Shows a row; a POST changes it."""
        row = self._visible_row(request, code)
        if request.method != "POST":
            return self._render(request, row, SymptomForm(initial=_initial(row)))
        form = SymptomForm(request.POST)
        if not form.is_valid():
            return self._render(request, row, form, status=422)
        try:
            edited = edit_row(
                draft=form.to_draft(code),
                expected_revision=form.cleaned_data["revision"] or 0,
                actor=actor_of(request),
            )
        except AssayError as error:
            show_error(request, error)
            return self._render(request, get_symptom(code), form, status=error.status)
        if edited.revision == row.revision:
            messages.info(request, "Nothing was changed.")
        else:
            messages.success(request, "The row is kept; a later version does not overwrite it.")
        return redirect("admin:training_symptom_page", code=code)

    def restore(self, request: HttpRequest, code: str) -> HttpResponse:
        """Goes back to the shipped text."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self._visible_row(request, code)
        revision = request.POST.get("revision", "")
        try:
            restore_row(
                code=code,
                # Without a revision it is that of nobody's row.
                expected_revision=int(revision)
                if revision.isascii() and revision.isdigit()
                else row.revision + 1,
                actor=actor_of(request),
            )
            messages.success(
                request, "The row has its shipped text again; the audit log keeps the other one."
            )
        except AssayError as error:
            show_error(request, error)
        return redirect("admin:training_symptom_page", code=code)

    def _render(
        self, request: HttpRequest, row: Symptom | None, form: SymptomForm, *, status: int = 200
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "Add a row to the handbook" if row is None else f"Handbook: {row.code}",
            "opts": self.opts,
            "is_fullwidth": "1",
            "row": row,
            "form": form,
            "classes": [item.value for item in SymptomClass],
            "languages": [
                {"code": code, "label": label, **{name: form[f"{name}_{code}"] for name in _TEXT_FIELDS}}
                for code, label in HandbookLanguage.choices
            ],
            "texts": [] if row is None else list(row.texts.all()),
            "incidents": [] if row is None else list_incidents(symptom=row.code)[:MAX_SHOWN_INCIDENTS],
            "is_shipped": row is not None and row.code in set(HandbookRow),
            "user_may_edit": actor_of(request).has_scope(TokenScope.REVIEW),
        }
        return render(request, TEMPLATE, context, status=status)

    def _visible_row(self, request: HttpRequest, code: str) -> Symptom:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return get_symptom(code)
        except TrainingNotFound as error:
            raise Http404 from error


def _initial(row: Symptom) -> dict[str, Any]:
    draft = read_draft(row)
    values: dict[str, Any] = {
        "code": row.code,
        "symptom_class": row.symptom_class,
        "detectors": "\n".join(draft.detectors),
        "revision": row.revision,
    }
    for language, text in draft.texts.items():
        values |= {
            f"symptom_{language}": text.symptom,
            f"causes_{language}": "\n".join(text.causes),
            f"treatment_{language}": "\n".join(text.treatment),
            f"source_{language}": text.source,
        }
    return values


def _lines(text: str) -> tuple[str, ...]:
    """One item a line; lines without anything are none."""
    return tuple(line.strip() for line in text.split("\n") if line.strip())
