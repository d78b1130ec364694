"""Reads reviews and sums up what people found in a dataset version."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet

from registry.models import DatasetVersion
from training.choices import ReviewVerdict
from training.errors import TrainingNotFound
from training.models import ReviewItem, ReviewTask

_REVISION = re.compile(r"r(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSummary:
    """What people found in a dataset version, over all of its reviews.

    An example that was looked at in several reviews counts once, by its latest verdict.
    """

    num_good: int
    num_bad: int
    num_to_fix: int

    @property
    def num_reviewed(self) -> int:
        """Examples with a verdict."""
        return self.num_good + self.num_bad + self.num_to_fix


def list_reviews(*, version: DatasetVersion | None = None) -> QuerySet[ReviewTask]:
    """All reviews, or those of a dataset version, newest first; each with `num_open`, `num_good`, `num_bad`
    and `num_to_fix`.
    """
    rows = ReviewTask.objects.select_related(
        "dataset_version__dataset", "result__dataset", "reviewer", "created_by"
    )
    if version is not None:
        rows = rows.filter(dataset_version=version)
    # Grouped queries do not take the order of the model's Meta.
    return rows.order_by("-created_at").annotate(
        num_open=Count("items", filter=Q(items__verdict="")),
        num_good=Count("items", filter=Q(items__verdict=ReviewVerdict.GOOD)),
        num_bad=Count("items", filter=Q(items__verdict=ReviewVerdict.BAD)),
        num_to_fix=Count("items", filter=Q(items__verdict=ReviewVerdict.FIX)),
    )


def get_review(task_id: uuid.UUID) -> ReviewTask:
    """One review.

    Raises:
        TrainingNotFound: there is none of this id.
    """
    row = list_reviews().filter(pk=task_id).first()
    if row is None:
        raise TrainingNotFound("review-not-found", task_id=str(task_id))
    return row


def list_review_items(task: ReviewTask) -> QuerySet[ReviewItem]:
    """The examples of a review in their order."""
    return task.items.select_related("reviewer", "task")


def get_review_item(task: ReviewTask, position: int) -> ReviewItem:
    """One example of a review; positions begin at 1.

    Raises:
        TrainingNotFound: there is none at this position.
    """
    item = list_review_items(task).filter(position=position).first()
    if item is None:
        raise TrainingNotFound("review-item-not-found", task_id=str(task.pk), position=position)
    return item


def find_next_open_position(task: ReviewTask, *, after: int) -> int | None:
    """The position of the next example without a verdict, going round to the beginning; None when all have
    one.
    """
    positions = task.items.filter(verdict="").order_by("position").values_list("position", flat=True)
    following = positions.filter(position__gt=after).first()
    return positions.first() if following is None else following


def find_latest_verdict_of(task: ReviewTask, user: User) -> ReviewItem | None:
    """The item on which a person gave the latest verdict in a review; None before the first."""
    return list_review_items(task).filter(reviewer=user).order_by("-reviewed_at", "-position").first()


def review_summary(version: DatasetVersion) -> ReviewSummary:
    """What people found in a dataset version."""
    items = ReviewItem.objects.filter(task__dataset_version=version).exclude(verdict="")
    latest: Mapping[str, str] = dict(items.order_by("reviewed_at", "pk").values_list("example_id", "verdict"))
    verdicts = list(latest.values())
    return ReviewSummary(
        num_good=verdicts.count(ReviewVerdict.GOOD),
        num_bad=verdicts.count(ReviewVerdict.BAD),
        num_to_fix=verdicts.count(ReviewVerdict.FIX),
    )


def revision_of_etag(etag: str) -> int | None:
    """The revision that an ETag names; None for a text that is no ETag of an item."""
    found = _REVISION.fullmatch(etag)
    return int(found.group(1)) if found else None


def item_etag(item: ReviewItem) -> str:
    """The item's ETag without quotes: `r` and its revision."""
    return f"r{item.revision}"
