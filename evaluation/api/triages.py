"""Triages over REST: does this task need a fine-tune at all (MISSION A1)?"""

from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.api.triage_serializers import (
    TriageCloseSerializer,
    TriageCreateSerializer,
    TriageItemSerializer,
    TriageListSerializer,
    TriageSerializer,
    TriageWordSerializer,
)
from evaluation.choices import TriageState
from evaluation.engine.triage.kinds import Outcome
from evaluation.models import Triage, TriageItem
from evaluation.selectors.triages import (
    get_triage,
    get_triage_item,
    list_triage_items,
    list_triages,
    revision_of_etag,
)
from evaluation.services.triage_words import close_triage, confirm_item
from evaluation.services.triages import TriageRequest, cancel_triage, create_triage
from registry.api.base import AssayView, etags_in, page_schema, query_choice
from registry.api.idempotency import idempotent
from registry.api.pagination import PositionCursorPagination
from registry.choices import TokenScope
from registry.errors import PreconditionRequired

MAY_LOOK = (TokenScope.READ, TokenScope.EVALUATE, TokenScope.REVIEW)
_TAGS = ["triages"]
_IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The sample's ETag as it was seen."
)


class TriageView(AssayView):
    """Base of the views of triages."""

    def answer(self, row: Triage, status_code: int = status.HTTP_200_OK) -> Response:
        """The triage as JSON."""
        return Response(TriageSerializer(row, context={"request": self.request}).data, status=status_code)


class TriageListView(TriageView):
    """All triages."""

    scopes = {"GET": MAY_LOOK, "POST": (TokenScope.EVALUATE,)}

    @extend_schema(
        operation_id="triages_list",
        tags=_TAGS,
        parameters=[OpenApiParameter("state", str, enum=TriageState.values)],
        responses=page_schema(TriageListSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists triages, newest first."""
        rows = list_triages(state=query_choice(request, "state", TriageState.values))
        return self.page_of(rows, TriageListSerializer)

    @extend_schema(
        operation_id="triages_create",
        tags=_TAGS,
        request=TriageCreateSerializer,
        responses={201: TriageSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Runs samples on a base model under one or several prompts and sorts the failures."""
        body = self.validated(TriageCreateSerializer)
        row = create_triage(
            request=TriageRequest(
                name=body["name"],
                base_model_name=body["base_model"],
                samples=body["samples"],
                prompts=body["prompts"],
                output_schema=body["output_schema"],
                max_tokens=body["max_tokens"],
            ),
            actor=self.actor,
        )
        return self.answer(row, status.HTTP_201_CREATED)


class TriageDetailView(TriageView):
    """One triage."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="triages_retrieve", tags=_TAGS, responses=TriageSerializer)
    def get(self, request: Request, triage_id: UUID) -> Response:
        """Shows a triage with its verdict."""
        return self.answer(get_triage(triage_id))


class TriageItemListView(AssayView):
    """The samples of a triage."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(
        operation_id="triage_items_list",
        tags=_TAGS,
        parameters=[OpenApiParameter("outcome", str, enum=[item.value for item in Outcome])],
        responses=page_schema(TriageItemSerializer),
    )
    def get(self, request: Request, triage_id: UUID) -> Response:
        """Lists the samples in their order, under the best prompt; none before they are sorted."""
        items = list_triage_items(get_triage(triage_id))
        if (outcome := query_choice(request, "outcome", [item.value for item in Outcome])) is not None:
            items = items.filter(outcome=outcome)
        return self.page_of(items, TriageItemSerializer, pagination_class=PositionCursorPagination)


class TriageItemView(AssayView):
    """One sample of a triage, and what a person says of it."""

    scopes = {"GET": MAY_LOOK, "PUT": (TokenScope.REVIEW,)}

    @extend_schema(operation_id="triage_items_retrieve", tags=_TAGS, responses=TriageItemSerializer)
    def get(self, request: Request, triage_id: UUID, position: int) -> Response:
        """Shows a sample."""
        return _item_answer(get_triage_item(get_triage(triage_id), position))

    @extend_schema(
        operation_id="triage_items_confirm",
        tags=_TAGS,
        parameters=[_IF_MATCH],
        request=TriageWordSerializer,
        responses=TriageItemSerializer,
    )
    def put(self, request: Request, triage_id: UUID, position: int) -> Response:
        """Confirms or changes the kind of a failure; 412 when somebody else did since it was seen."""
        body = self.validated(TriageWordSerializer)
        item = confirm_item(
            triage=get_triage(triage_id),
            position=position,
            kind=body["kind"],
            note=body["note"],
            expected_revision=_expected_revision(request, body.get("revision")),
            actor=self.actor,
        )
        return _item_answer(item)


class TriageCancelView(TriageView):
    """Cancelling a triage."""

    scopes = {"POST": (TokenScope.EVALUATE,)}

    @extend_schema(operation_id="triages_cancel", tags=_TAGS, request=None, responses=TriageSerializer)
    @idempotent
    def post(self, request: Request, triage_id: UUID) -> Response:
        """Ends a triage whose samples are not sorted yet."""
        return self.answer(cancel_triage(triage=get_triage(triage_id), actor=self.actor))


class TriageCloseView(TriageView):
    """The end of a triage."""

    scopes = {"POST": (TokenScope.REVIEW,)}

    @extend_schema(
        operation_id="triages_close", tags=_TAGS, request=TriageCloseSerializer, responses=TriageSerializer
    )
    @idempotent
    def post(self, request: Request, triage_id: UUID) -> Response:
        """Closes a triage and stores its verdict with the reasons."""
        body = self.validated(TriageCloseSerializer)
        row = close_triage(
            triage=get_triage(triage_id), actor=self.actor, allow_unconfirmed=body["allow_unconfirmed"]
        )
        return self.answer(row)


def _item_answer(item: TriageItem) -> Response:
    answer = TriageItemSerializer(item).data
    return Response(answer, headers={"ETag": f'"{answer["etag"]}"'})


def _expected_revision(request: Request, stated: int | None) -> int:
    """The revision that the client has seen, from `If-Match` or the body.

    Raises:
        PreconditionRequired: neither says it (428).
    """
    for etag in etags_in(request.headers.get("If-Match", "")):
        if (revision := revision_of_etag(etag)) is not None:
            return revision
    if stated is None:
        raise PreconditionRequired("precondition-required")
    return stated
