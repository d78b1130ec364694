"""Reviews: one example at a time, a verdict by key or button, and what becomes of the verdicts."""

import uuid
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from unfold.views import ChangeList

from registry.admin.base import ReadOnlyAdmin, actor_of
from registry.choices import TokenScope
from registry.errors import AssayError
from training.admin.messages import show_error
from training.admin.review_page import build_item_context
from training.choices import ReviewState
from training.errors import TrainingNotFound, VerdictChanged
from training.models import ReviewItem, ReviewTask
from training.selectors.reviews import (
    find_latest_verdict_of,
    find_next_open_position,
    get_review,
    get_review_item,
)
from training.services.review_results import close_task
from training.services.reviews import MAX_ANSWER_CHARACTERS, MAX_NOTE_CHARACTERS, record_verdict

TEMPLATE: Final = "admin/training/reviewtask/item.html"


class VerdictForm(forms.Form):
    """A verdict as the page sends it; `revision` is the item as the person saw it."""

    verdict = forms.CharField(max_length=8, required=False)
    revision = forms.IntegerField(min_value=0)
    fixed_answer = forms.CharField(required=False, strip=False, max_length=MAX_ANSWER_CHARACTERS)
    note = forms.CharField(required=False, max_length=MAX_NOTE_CHARACTERS)


class ReviewChangeList(ChangeList):  # type: ignore[misc]
    """The list of reviews, whose lines lead to the next example that waits."""

    def url_for_result(self, result: ReviewTask) -> str:
        """The address of the review's screen."""
        return reverse("admin:training_reviewtask_review", args=(result.pk,))


@admin.register(ReviewTask)
class ReviewTaskAdmin(ReadOnlyAdmin):
    """Reviews and their screens."""

    list_display = (
        "dataset_version",
        "state",
        "num_examples",
        "reviewer",
        "result",
        "created_at",
        "closed_at",
    )
    list_filter = ("state", "dataset_version__dataset__role", "reviewer")
    search_fields = ("dataset_version__dataset__name", "id")
    ordering = ("-created_at",)
    list_select_related = ("dataset_version__dataset", "result__dataset", "reviewer")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose lines lead to the review's screen."""
        return ReviewChangeList

    def get_urls(self) -> list[URLPattern]:
        """The screen's addresses before Django's own, whose last pattern takes everything."""
        view = self.admin_site.admin_view
        base = "<uuid:task_id>/review/"
        own = [
            path(base, view(self.show_next), name="training_reviewtask_review"),
            path(f"{base}close/", view(self.close), name="training_reviewtask_close"),
            path(f"{base}undo/", view(self.undo), name="training_reviewtask_undo"),
            path(f"{base}<int:position>/", view(self.show_item), name="training_reviewtask_item"),
        ]
        return own + list(super().get_urls())

    def show_next(self, request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
        """Leads to the first example without a verdict, or to the first one."""
        task = self._visible_task(request, task_id)
        position = find_next_open_position(task, after=0) or 1
        return redirect("admin:training_reviewtask_item", task_id=task.pk, position=position)

    def show_item(self, request: HttpRequest, task_id: uuid.UUID, position: int) -> HttpResponse:
        """Shows one example; a POST gives it a verdict and leads to the next one."""
        task = self._visible_task(request, task_id)
        try:
            item = get_review_item(task, position)
        except TrainingNotFound as error:
            raise Http404 from error
        if request.method != "POST":
            return self._render(request, task, item)
        return self._judge(request, task, item)

    def undo(self, request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
        """Takes back the person's latest verdict in this review and leads to its example."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        task, actor = self._visible_task(request, task_id), actor_of(request)
        item = None if actor.user is None else find_latest_verdict_of(task, actor.user)
        if item is None:
            messages.info(request, "You have given no verdict in this review that could be taken back.")
            return redirect("admin:training_reviewtask_review", task_id=task.pk)
        try:
            record_verdict(
                task=task,
                position=item.position,
                verdict="",
                expected_revision=item.revision,
                actor=actor,
            )
        except AssayError as error:
            show_error(request, error)
        return redirect("admin:training_reviewtask_item", task_id=task.pk, position=item.position)

    def close(self, request: HttpRequest, task_id: uuid.UUID) -> HttpResponse:
        """Ends the review."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        task = self._visible_task(request, task_id)
        try:
            closed = close_task(
                task=task,
                actor=actor_of(request),
                apply_fixes=request.POST.get("apply_fixes") == "on",
                allow_open=request.POST.get("allow_open") == "on",
            )
        except AssayError as error:
            show_error(request, error)
            return redirect("admin:training_reviewtask_review", task_id=task.pk)
        if closed.result is None:
            messages.success(request, "The review is closed.")
            return redirect("admin:training_datasetversion_card", version_id=task.dataset_version_id)
        is_same = closed.result_id == task.dataset_version_id
        text = f"it changes nothing in {closed.result}" if is_same else f"{closed.result} was made of it"
        messages.success(request, f"The review is closed; {text}.")
        return redirect("admin:training_datasetversion_card", version_id=closed.result_id)

    def _judge(self, request: HttpRequest, task: ReviewTask, item: ReviewItem) -> HttpResponse:
        form = VerdictForm(request.POST)
        if not form.is_valid():
            for name, errors in form.errors.items():
                messages.error(request, f"{name}: {' '.join(map(str, errors))}")
            return self._render(request, task, item, draft=request.POST, status=422)
        values = form.cleaned_data
        try:
            record_verdict(
                task=task,
                position=item.position,
                verdict=values["verdict"],
                # A form sends line breaks as CR LF.
                fixed_answer=values["fixed_answer"].replace("\r\n", "\n"),
                note=values["note"].replace("\r\n", "\n"),
                expected_revision=values["revision"],
                actor=actor_of(request),
            )
        except AssayError as error:
            # The page itself tells of a conflict, beside what the person has written.
            is_conflict = isinstance(error, VerdictChanged)
            if not is_conflict:
                show_error(request, error)
            changed = get_review_item(task, item.position)
            return self._render(
                request, task, changed, draft=values, is_conflict=is_conflict, status=error.status
            )
        if not values["verdict"]:
            return redirect("admin:training_reviewtask_item", task_id=task.pk, position=item.position)
        following = find_next_open_position(task, after=item.position)
        if following is None:
            messages.success(request, "Every example has a verdict; the review can be closed.")
        position = following or item.position
        return redirect("admin:training_reviewtask_item", task_id=task.pk, position=position)

    def _render(
        self,
        request: HttpRequest,
        task: ReviewTask,
        item: ReviewItem,
        *,
        draft: Any = None,
        is_conflict: bool = False,
        status: int = 200,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            **build_item_context(get_review(task.pk), item, draft or {}),
            "title": f"Review of {task.dataset_version}",
            "opts": self.opts,
            "is_fullwidth": "1",
            "is_conflict": is_conflict,
            "user_may_review": actor_of(request).has_scope(TokenScope.REVIEW)
            and task.state == ReviewState.OPEN,
        }
        return render(request, TEMPLATE, context, status=status)

    def _visible_task(self, request: HttpRequest, task_id: uuid.UUID) -> ReviewTask:
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            return get_review(task_id)
        except TrainingNotFound as error:
            raise Http404 from error


@admin.register(ReviewItem)
class ReviewItemAdmin(ReadOnlyAdmin):
    """Single verdicts, for looking up."""

    list_display = ("example_id", "task", "position", "verdict", "reviewer", "reviewed_at")
    list_filter = ("verdict", "reviewer")
    search_fields = ("example_id", "task__dataset_version__dataset__name")
    ordering = ("-task__created_at", "position")
    list_select_related = ("task__dataset_version__dataset", "reviewer")
    show_full_result_count = False
