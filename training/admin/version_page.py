"""The page of a dataset version: its card, where it comes from, and what people found in it."""

import uuid
from typing import Any, Final

from django import forms
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import URLPattern, path

from registry.admin.base import actor_of
from registry.choices import EVALUATION_ROLES, TokenScope
from registry.errors import AssayError
from registry.models import DatasetVersion
from training.admin.card_page import build_contents
from training.admin.messages import show_error
from training.errors import TrainingNotFound
from training.models import DataPreparation
from training.selectors.preparations import find_preparation_of, get_preparation
from training.selectors.reviews import list_reviews, review_summary
from training.services.reviews import DEFAULT_NUM_EXAMPLES, MAX_EXAMPLES, create_task

TEMPLATE: Final = "admin/training/datasetversion/card.html"
MAX_SHOWN_REVIEWS: Final = 50


class StartReviewForm(forms.Form):
    """How many examples are to be reviewed; every one with `is_full`."""

    num_examples = forms.IntegerField(min_value=1, required=False)
    seed = forms.IntegerField(min_value=0, max_value=2**53 - 1, required=False)
    is_full = forms.BooleanField(required=False)


class VersionPages:
    """Views about dataset versions that the training app has more to say about than the registry."""

    def __init__(self, model_admin: "ModelAdmin[DataPreparation]") -> None:
        """Takes the admin whose rights and look the pages have."""
        self.model_admin = model_admin

    def get_urls(self) -> list[URLPattern]:
        """The pages' addresses."""
        view = self.model_admin.admin_site.admin_view
        base = "dataset-versions/<int:version_id>/"
        return [
            path(base, view(self.show_card), name="training_datasetversion_card"),
            path(f"{base}review/", view(self.start_review), name="training_datasetversion_start_review"),
        ]

    def show_card(self, request: HttpRequest, version_id: int) -> HttpResponse:
        """The page of one dataset version."""
        version = self._visible_version(request, version_id)
        context: dict[str, Any] = {
            **self.model_admin.admin_site.each_context(request),
            "title": f"Dataset version {version}",
            "opts": self.model_admin.opts,
            "is_fullwidth": "1",
            "version": version,
            "contents": build_contents(version.card),
            "preparation": find_preparation_of(version) or _find_origin(version),
            "lineage": version.card,
            "reviews": list_reviews(version=version)[:MAX_SHOWN_REVIEWS],
            "summary": review_summary(version),
            "is_evaluation_set": version.dataset.role in EVALUATION_ROLES,
            "default_num_examples": min(DEFAULT_NUM_EXAMPLES, version.num_examples),
            "can_be_reviewed_whole": version.num_examples <= MAX_EXAMPLES,
            "user_may_review": actor_of(request).has_scope(TokenScope.REVIEW),
        }
        return render(request, TEMPLATE, context)

    def start_review(self, request: HttpRequest, version_id: int) -> HttpResponse:
        """Chooses examples for a review and leads to the first of them."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        version = self._visible_version(request, version_id)
        form = StartReviewForm(request.POST)
        values = form.cleaned_data if form.is_valid() else {}
        is_full, seed = values.get("is_full", False), values.get("seed")
        try:
            task = create_task(
                version=version,
                actor=actor_of(request),
                # A further review looks at other examples than the ones before it.
                seed=list_reviews(version=version).count() if seed is None else seed,
                num_examples=None if is_full else values.get("num_examples") or DEFAULT_NUM_EXAMPLES,
            )
        except AssayError as error:
            show_error(request, error)
            return redirect("admin:training_datasetversion_card", version_id=version.pk)
        return redirect("admin:training_reviewtask_review", task_id=task.pk)

    def _visible_version(self, request: HttpRequest, version_id: int) -> DatasetVersion:
        if not self.model_admin.has_view_permission(request):
            raise PermissionDenied
        rows = DatasetVersion.objects.select_related("dataset", "artifact", "created_by")
        version = rows.filter(pk=version_id).first()
        if version is None:
            raise Http404
        return version


def _find_origin(version: DatasetVersion) -> DataPreparation | None:
    """The preparation of the version that a review started from, by the lineage in the card."""
    try:
        return get_preparation(uuid.UUID(str(version.card.get("preparation"))))
    except (ValueError, TrainingNotFound):
        return None
