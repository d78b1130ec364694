"""Raw data: files are sent, shown as they were understood, and prepared."""

import dataclasses
import json
import uuid
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from unfold.views import ChangeList

from registry.admin.base import ReadOnlyAdmin, actor_of, shown_size
from registry.errors import AssayError
from training.admin.messages import show_error
from training.admin.preparations import may_prepare
from training.admin.prepare_draft import Draft, default_recipe, format_recipe, read_recipe
from training.admin.prepare_page import build_form
from training.admin.understanding_page import show_understanding, suggested_columns
from training.errors import TrainingInvalid, TrainingNotFound
from training.models import DataPreparation, RawData
from training.selectors.preparations import get_preparation
from training.selectors.raw_data import get_raw_data
from training.services.preparations import create_preparation
from training.services.raw_data import RawFile, store_raw_files
from training.services.understandings import understand_raw_data

UPLOAD_TEMPLATE: Final = "admin/training/rawdata/upload.html"
PAGE_TEMPLATE: Final = "admin/training/rawdata/page.html"
MAX_SHOWN_FILES: Final = 100
MAX_SHOWN_PREPARATIONS: Final = 20


class ManyFilesInput(forms.ClearableFileInput):
    """A field for several files."""

    allow_multiple_selected = True


class ManyFilesField(forms.FileField):
    """Several files, each with a name and content."""

    widget = ManyFilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        """The files as a list."""
        listed = data if isinstance(data, list | tuple) else [data]
        return [super(ManyFilesField, self).clean(item, initial) for item in listed]


class UploadForm(forms.Form):
    """Raw files and their name."""

    name = forms.CharField(max_length=96)
    raw_files = ManyFilesField(label="Files")


class RawDataChangeList(ChangeList):  # type: ignore[misc]
    """The list of raw data, whose lines lead to the page that prepares them."""

    def url_for_result(self, result: RawData) -> str:
        """The address of the page."""
        return reverse("admin:training_rawdata_page", args=(result.pk,))


@admin.register(RawData)
class RawDataAdmin(ReadOnlyAdmin):
    """Raw data, and the page that prepares them."""

    list_display = ("name", "num_files", "size", "digest", "created_at", "created_by")
    search_fields = ("name", "id", "artifact__digest")
    ordering = ("-created_at",)
    list_select_related = ("artifact", "created_by")

    @admin.display(description="files")
    def num_files(self, row: RawData) -> int:
        """How many files there are."""
        return row.artifact.num_files

    @admin.display(description="size")
    def size(self, row: RawData) -> str:
        """Their size."""
        return shown_size(row.artifact)

    @admin.display(description="artifact")
    def digest(self, row: RawData) -> str:
        """The beginning of the artifact's digest."""
        return row.artifact_id[:12]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Whoever may prepare."""
        return may_prepare(actor_of(request))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose lines lead to the page that prepares them."""
        return RawDataChangeList

    def get_urls(self) -> list[URLPattern]:
        """The page's address before Django's own, whose last pattern takes everything."""
        view = self.admin_site.admin_view(self.show_page)
        return [path("<uuid:raw_id>/page/", view, name="training_rawdata_page"), *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Takes files and gives them a name."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = UploadForm(request.POST or None, request.FILES or None)
        if request.method == "POST" and form.is_valid():
            files = [RawFile(path=str(item.name), stream=item) for item in form.cleaned_data["raw_files"]]
            try:
                row, is_new = store_raw_files(
                    name=form.cleaned_data["name"], files=files, actor=actor_of(request)
                )
            except AssayError as error:
                show_error(request, error)
            else:
                text = "" if is_new else " They were there already."
                messages.success(request, f"The files are stored.{text}")
                return redirect("admin:training_rawdata_page", raw_id=row.pk)
        context = {
            **self.admin_site.each_context(request),
            "title": "Add raw data",
            "opts": self.opts,
            "form": form,
            # A request may have this much and the form's own framing.
            "max_bytes": settings.UPLOAD_CHUNK_BYTES,
            "api_url": reverse("upload-list").removesuffix("uploads"),
        }
        status = 422 if request.method == "POST" else 200
        return render(request, UPLOAD_TEMPLATE, context, status=status)

    def show_page(self, request: HttpRequest, raw_id: uuid.UUID) -> HttpResponse:
        """Shows how the files were understood and the form that prepares them; a POST changes or sends it."""
        raw = self._visible_row(request, raw_id)
        if request.method != "POST":
            return self._render(request, raw, _first_draft(request, raw))
        draft = Draft.of_form(request.POST)
        match request.POST.get("action"):
            case "start":
                return self._start(request, raw, draft, draft.recipe())
            case "start_json":
                recipe, faults = read_recipe(draft.recipe_text)
                if recipe is None:
                    broken = dataclasses.replace(draft, faults=faults, is_json_shown=True)
                    return self._render(request, raw, broken, status=422)
                shown = dataclasses.replace(draft, is_json_shown=True)
                return self._start(request, raw, shown, recipe)
            case "show_json":
                return self._render(request, raw, draft.with_json_from_fields())
            case "read_json":
                return self._render(request, raw, draft.with_fields_from_json())
        return self._render(request, raw, draft)

    def _start(self, request: HttpRequest, raw: RawData, draft: Draft, recipe: Any) -> HttpResponse:
        try:
            row = create_preparation(request=draft.request(str(raw.pk), recipe), actor=actor_of(request))
        except TrainingInvalid as error:
            return self._render(request, raw, dataclasses.replace(draft, faults=error.faults), status=422)
        except AssayError as error:
            show_error(request, error)
            return self._render(request, raw, draft, status=error.status)
        return redirect("admin:training_datapreparation_report", preparation_id=row.pk)

    def _render(self, request: HttpRequest, raw: RawData, draft: Draft, status: int = 200) -> HttpResponse:
        intake = draft.recipe()["intake"]
        context = {
            **self.admin_site.each_context(request),
            "title": f"Raw data {raw.name}",
            "opts": self.opts,
            "is_fullwidth": "1",
            "raw": raw,
            "files": raw.artifact.files.select_related("blob")[:MAX_SHOWN_FILES],
            "preparations": raw.preparations.all()[:MAX_SHOWN_PREPARATIONS],
            "understanding": show_understanding(understand_raw_data(raw, intake)),
            "draft": draft,
            "form": build_form(draft.texts, draft.evaluation_sets),
            "base_text": format_recipe(draft.base),
            "user_may_prepare": may_prepare(actor_of(request)),
        }
        return render(request, PAGE_TEMPLATE, context, status=status)

    def _visible_row(self, request: HttpRequest, raw_id: uuid.UUID) -> RawData:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return get_raw_data(raw_id)
        except TrainingNotFound as error:
            raise Http404 from error


def _first_draft(request: HttpRequest, raw: RawData) -> Draft:
    """What the page begins with: an earlier preparation's recipe, or the defaults with suggested columns."""
    earlier = _find_earlier(request.GET.get("recipe_of", ""))
    if earlier is not None:
        return Draft.of_preparation(earlier)
    recipe = default_recipe()
    suggested = suggested_columns(understand_raw_data(raw, recipe["intake"]))
    if suggested:
        intake = {**recipe["intake"], "shape": "columns", "columns": suggested}
        recipe = read_recipe(json.dumps({**recipe, "intake": intake}))[0] or recipe
    return Draft.of_recipe(recipe, {"name": raw.name})


def _find_earlier(text: str) -> DataPreparation | None:
    try:
        return get_preparation(uuid.UUID(text))
    except (ValueError, TrainingNotFound):
        return None
