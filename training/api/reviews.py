"""Reviews of dataset versions over REST."""

from uuid import UUID

from django.contrib.auth.models import User
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, etags_in, page_schema, query_text
from registry.api.idempotency import idempotent
from registry.api.pagination import PositionCursorPagination
from registry.choices import TokenScope
from registry.errors import Fault, PreconditionRequired
from registry.selectors.datasets import get_dataset_version
from training.api.data_serializers import (
    ReviewCloseSerializer,
    ReviewCreateSerializer,
    ReviewDetailSerializer,
    ReviewItemSerializer,
    ReviewSerializer,
    VerdictSerializer,
)
from training.errors import TrainingInvalid
from training.models import ReviewItem
from training.selectors.reviews import (
    get_review,
    get_review_item,
    item_etag,
    list_review_items,
    list_reviews,
    revision_of_etag,
)
from training.services.review_results import close_task
from training.services.reviews import create_task, record_verdict

MAY_LOOK = (TokenScope.READ, TokenScope.REVIEW)
_TAGS = ["reviews"]
_IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The item's ETag as it was seen."
)


class ReviewListView(AssayView):
    """All reviews."""

    scopes = {"GET": MAY_LOOK, "POST": (TokenScope.REVIEW,)}

    @extend_schema(
        operation_id="reviews_list",
        tags=_TAGS,
        parameters=[OpenApiParameter("dataset_version", str, description="name@number")],
        responses=page_schema(ReviewSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists reviews, newest first."""
        reference = query_text(request, "dataset_version")
        version = None if reference is None else get_dataset_version(reference)
        return self.page_of(list_reviews(version=version), ReviewSerializer)

    @extend_schema(
        operation_id="reviews_create",
        tags=_TAGS,
        request=ReviewCreateSerializer,
        responses={201: ReviewDetailSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Chooses examples of a dataset version at random, for people to look at."""
        body = self.validated(ReviewCreateSerializer)
        task = create_task(
            version=get_dataset_version(body["dataset_version"], where="/dataset_version"),
            actor=self.actor,
            seed=body["seed"],
            num_examples=body["num_examples"],
            reviewer=_find_reviewer(body.get("reviewer")),
        )
        answer = ReviewDetailSerializer(get_review(task.pk), context={"request": request})
        return Response(answer.data, status=status.HTTP_201_CREATED)


class ReviewView(AssayView):
    """One review."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="reviews_retrieve", tags=_TAGS, responses=ReviewDetailSerializer)
    def get(self, request: Request, task_id: UUID) -> Response:
        """Shows a review with its examples."""
        answer = ReviewDetailSerializer(get_review(task_id), context={"request": request})
        return Response(answer.data)


class ReviewItemListView(AssayView):
    """The examples of a review."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="review_items_list", tags=_TAGS, responses=page_schema(ReviewItemSerializer))
    def get(self, request: Request, task_id: UUID) -> Response:
        """Lists the examples of a review in their order."""
        items = list_review_items(get_review(task_id))
        return self.page_of(items, ReviewItemSerializer, pagination_class=PositionCursorPagination)


class ReviewItemView(AssayView):
    """One example of a review, and its verdict."""

    scopes = {"GET": MAY_LOOK, "PUT": (TokenScope.REVIEW,)}

    @extend_schema(operation_id="review_items_retrieve", tags=_TAGS, responses=ReviewItemSerializer)
    def get(self, request: Request, task_id: UUID, position: int) -> Response:
        """Shows an example of a review."""
        return _item_answer(get_review_item(get_review(task_id), position))

    @extend_schema(
        operation_id="review_items_judge",
        tags=_TAGS,
        parameters=[_IF_MATCH],
        request=VerdictSerializer,
        responses=ReviewItemSerializer,
    )
    def put(self, request: Request, task_id: UUID, position: int) -> Response:
        """Gives or takes back a verdict; 412 when somebody else did since the item was seen."""
        body = self.validated(VerdictSerializer)
        item = record_verdict(
            task=get_review(task_id),
            position=position,
            verdict=body["verdict"],
            fixed_answer=body["fixed_answer"],
            note=body["note"],
            expected_revision=_expected_revision(request, body.get("revision")),
            actor=self.actor,
        )
        return _item_answer(item)


class ReviewCloseView(AssayView):
    """The end of a review."""

    scopes = {"POST": (TokenScope.REVIEW,)}

    @extend_schema(
        operation_id="reviews_close", tags=_TAGS, request=ReviewCloseSerializer, responses=ReviewSerializer
    )
    @idempotent
    def post(self, request: Request, task_id: UUID) -> Response:
        """Closes a review; its verdicts become a new dataset version, which `result` names."""
        body = self.validated(ReviewCloseSerializer)
        task = close_task(
            task=get_review(task_id),
            actor=self.actor,
            apply_fixes=body["apply_fixes"],
            allow_open=body["allow_open"],
        )
        return Response(ReviewSerializer(task, context={"request": request}).data)


def _item_answer(item: ReviewItem) -> Response:
    return Response(ReviewItemSerializer(item).data, headers={"ETag": f'"{item_etag(item)}"'})


def _find_reviewer(name: str | None) -> User | None:
    if name is None:
        return None
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        message = "There is no active user of that name."
        fault = Fault(code="reviewer-unknown", message=message, where="/reviewer")
        raise TrainingInvalid("review-invalid", faults=[fault])
    return user


def _expected_revision(request: Request, stated: int | None) -> int:
    """The revision that the client saw, from `If-Match` or the body.

    Raises:
        PreconditionRequired: neither says it (428).
    """
    for etag in etags_in(request.headers.get("If-Match", "")):
        revision = revision_of_etag(etag)
        if revision is not None:
            return revision
    if stated is None:
        raise PreconditionRequired("precondition-required")
    return stated
