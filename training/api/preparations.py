"""Raw data and their preparation over REST."""

from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, page_schema
from registry.api.idempotency import idempotent
from registry.choices import TokenScope
from registry.services.datasets import SCOPES
from training.api.data_serializers import (
    PreparationCreateSerializer,
    PreparationSerializer,
    RawDataCreateSerializer,
    RawDataSerializer,
)
from training.models import DataPreparation
from training.selectors.preparations import (
    get_preparation,
    list_preparations,
    read_card,
    read_report_bytes,
)
from training.selectors.raw_data import get_raw_data, list_raw_data
from training.services.preparation_requests import PreparationRequest
from training.services.preparations import cancel_preparation, create_preparation, retry_preparation
from training.services.raw_data import create_raw_data

MAY_LOOK = (TokenScope.READ, *SCOPES)
_TAGS = ["data preparation"]


class RawDataListView(AssayView):
    """All raw data."""

    scopes = {"GET": MAY_LOOK, "POST": SCOPES}

    @extend_schema(operation_id="raw_data_list", tags=_TAGS, responses=page_schema(RawDataSerializer))
    def get(self, request: Request) -> Response:
        """Lists raw data, newest first."""
        return self.page_of(list_raw_data(), RawDataSerializer)

    @extend_schema(
        operation_id="raw_data_create",
        tags=_TAGS,
        request=RawDataCreateSerializer,
        responses={200: RawDataSerializer, 201: RawDataSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Gives uploaded files (an upload of kind raw_data) a name; the same again is what is there (200)."""
        body = self.validated(RawDataCreateSerializer)
        row, is_new = create_raw_data(name=body["name"], artifact_digest=body["artifact"], actor=self.actor)
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(RawDataSerializer(row).data, status=code)


class RawDataView(AssayView):
    """One of raw data."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="raw_data_retrieve", tags=_TAGS, responses=RawDataSerializer)
    def get(self, request: Request, reference: str) -> Response:
        """Shows raw data by id, or the newest of a name."""
        return Response(RawDataSerializer(get_raw_data(reference)).data)


class PreparationListView(AssayView):
    """All data preparations."""

    scopes = {"GET": MAY_LOOK, "POST": SCOPES}

    @extend_schema(operation_id="preparations_list", tags=_TAGS, responses=page_schema(PreparationSerializer))
    def get(self, request: Request) -> Response:
        """Lists data preparations, newest first."""
        return self.page_of(list_preparations(), PreparationSerializer)

    @extend_schema(
        operation_id="preparations_create",
        tags=_TAGS,
        request=PreparationCreateSerializer,
        responses={201: PreparationSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Begins a preparation; equal files and recipe reuse the earlier result."""
        body = self.validated(PreparationCreateSerializer)
        row = create_preparation(
            request=PreparationRequest(
                name=body["name"],
                raw_data=body["raw_data"],
                recipe=body.get("recipe", {}),
                general=body.get("general"),
                unchanged=body.get("unchanged"),
                evaluation_sets=body.get("evaluation_sets", []),
                base_model_name=body.get("base_model"),
            ),
            actor=self.actor,
        )
        return Response(_answer(row, request), status=status.HTTP_201_CREATED)


class PreparationView(AssayView):
    """One data preparation."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="preparations_retrieve", tags=_TAGS, responses=PreparationSerializer)
    def get(self, request: Request, preparation_id: UUID) -> Response:
        """Shows a data preparation."""
        return Response(_answer(get_preparation(preparation_id), request))


class PreparationCancelView(AssayView):
    """Cancelling one data preparation."""

    scopes = {"POST": SCOPES}

    @extend_schema(
        operation_id="preparations_cancel", tags=_TAGS, request=None, responses=PreparationSerializer
    )
    @idempotent
    def post(self, request: Request, preparation_id: UUID) -> Response:
        """Ends a data preparation."""
        row = cancel_preparation(preparation=get_preparation(preparation_id), actor=self.actor)
        return Response(_answer(row, request))


class PreparationRetryView(AssayView):
    """Beginning a data preparation again."""

    scopes = {"POST": SCOPES}

    @extend_schema(
        operation_id="preparations_retry", tags=_TAGS, request=None, responses=PreparationSerializer
    )
    @idempotent
    def post(self, request: Request, preparation_id: UUID) -> Response:
        """Begins a failed or cancelled data preparation again, with the same inputs."""
        row = retry_preparation(preparation=get_preparation(preparation_id), actor=self.actor)
        return Response(_answer(row, request))


class PreparationReportView(AssayView):
    """The report of one data preparation."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="preparations_report", tags=_TAGS, responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, preparation_id: UUID) -> HttpResponse:
        """Gives report.json: the recipe, every step's counts, the cards of the sets, findings and leaks."""
        content = read_report_bytes(get_preparation(preparation_id))
        return _file(content, "application/json")


class PreparationCardView(AssayView):
    """The dataset card of one data preparation."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(
        operation_id="preparations_card", tags=_TAGS, responses={(200, "text/markdown"): OpenApiTypes.STR}
    )
    def get(self, request: Request, preparation_id: UUID) -> HttpResponse:
        """Gives the dataset card as Markdown. It quotes the data: show it as text, not as HTML."""
        content = read_card(get_preparation(preparation_id)).encode()
        return _file(content, "text/markdown; charset=utf-8")


def _answer(row: DataPreparation, request: Request) -> object:
    return PreparationSerializer(row, context={"request": request}).data


def _file(content: bytes, content_type: str) -> HttpResponse:
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return HttpResponse(content, content_type=content_type, headers=headers)
