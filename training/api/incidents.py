"""The handbook and the incident register over REST (MISSION T5, T6)."""

from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, etags_in, page_schema, query_choice, query_text
from registry.api.idempotency import idempotent
from registry.api.pagination import AssayCursorPagination
from registry.choices import TokenScope
from registry.errors import PreconditionRequired
from training.api.incident_serializers import (
    CheckAnswerSerializer,
    HandbookRowSerializer,
    IncidentCreateSerializer,
    IncidentDetailSerializer,
    IncidentDismissSerializer,
    IncidentEditSerializer,
    IncidentEntrySerializer,
    IncidentResolveSerializer,
    IncidentSerializer,
    IncidentStepSerializer,
    QuarterReviewSerializer,
    RevisionSerializer,
)
from training.choices import HandbookLanguage, IncidentState
from training.models import Incident
from training.selectors.handbook import get_symptom, list_symptoms
from training.selectors.incidents import (
    get_incident,
    incident_etag,
    list_entries,
    list_incidents,
    revision_of_etag,
)
from training.selectors.quarterly import review_quarter
from training.selectors.quarterly_markdown import write_review
from training.selectors.quarters import Quarter, parse_quarter, quarter_of
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

MAY_LOOK = (TokenScope.READ, *MAY_NOTE)
_BOOLEANS = {"true": True, "false": False}
_TAGS = ["incidents"]
_LANGUAGE = OpenApiParameter("language", str, enum=HandbookLanguage.values)
_QUARTER = OpenApiParameter("quarter", str, description="Like 2026Q4, in UTC; without it the present one.")
_IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The incident's ETag as it was seen."
)


class HandbookPagination(AssayCursorPagination):
    """In the order of the handbook, all of it on one page as a rule."""

    page_size = 100
    ordering = ("position", "code")


class IncidentPagination(AssayCursorPagination):
    """Newest first."""

    ordering = "-number"


class EntryPagination(AssayCursorPagination):
    """The oldest first."""

    ordering = "id"


class HandbookListView(AssayView):
    """The handbook."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(
        operation_id="handbook_list",
        tags=["handbook"],
        parameters=[_LANGUAGE],
        responses=page_schema(HandbookRowSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists the rows of the handbook in their order."""
        paginator = HandbookPagination()
        rows: Any = paginator.paginate_queryset(list_symptoms(), request, self)
        answer = HandbookRowSerializer(rows, many=True, context={"language": _language(request)})
        return paginator.get_paginated_response(answer.data)


class HandbookRowView(AssayView):
    """One row of the handbook."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(
        operation_id="handbook_retrieve",
        tags=["handbook"],
        parameters=[_LANGUAGE],
        responses=HandbookRowSerializer,
    )
    def get(self, request: Request, code: str) -> Response:
        """Shows a row of the handbook."""
        row = get_symptom(code)
        return Response(HandbookRowSerializer(row, context={"language": _language(request)}).data)


class IncidentAnswerView(AssayView):
    """Base of the views of incidents."""

    def answer(self, incident: Incident, status_code: int = status.HTTP_200_OK) -> Response:
        """The incident as JSON, with its ETag."""
        body = IncidentDetailSerializer(incident, context={"request": self.request}).data
        return Response(body, status=status_code, headers={"ETag": f'"{incident_etag(incident)}"'})

    def expected_revision(self, stated: int | None) -> int:
        """The revision that the client saw, from `If-Match` or the body.

        Raises:
            PreconditionRequired: neither says it (428).
        """
        for etag in etags_in(self.request.headers.get("If-Match", "")):
            revision = revision_of_etag(etag)
            if revision is not None:
                return revision
        if stated is None:
            raise PreconditionRequired("precondition-required")
        return stated


class IncidentListView(IncidentAnswerView):
    """The incident register."""

    scopes = {"GET": MAY_LOOK, "POST": MAY_NOTE}

    @extend_schema(
        operation_id="incidents_list",
        tags=_TAGS,
        parameters=[
            OpenApiParameter("state", str, enum=IncidentState.values),
            OpenApiParameter("symptom", str, description="Code of a row; empty for incidents without one."),
            OpenApiParameter("asks_for_check", bool, description="Whether the question waits for an answer."),
        ],
        responses=page_schema(IncidentSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists incidents, newest first."""
        asks = query_choice(request, "asks_for_check", list(_BOOLEANS))
        rows = list_incidents(
            state=query_choice(request, "state", IncidentState.values),
            symptom=query_text(request, "symptom"),
            asks_for_check=None if asks is None else _BOOLEANS[asks],
        )
        return self.page_of(rows, IncidentSerializer, pagination_class=IncidentPagination)

    @extend_schema(
        operation_id="incidents_open",
        tags=_TAGS,
        request=IncidentCreateSerializer,
        responses={201: IncidentDetailSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Opens an incident by hand; the diagnosis opens them by itself."""
        body = self.validated(IncidentCreateSerializer)
        body["training_run"] = str(body.get("training_run") or "")
        incident = open_incident(request=IncidentRequest(**body), actor=self.actor)
        return self.answer(incident, status.HTTP_201_CREATED)


class IncidentView(IncidentAnswerView):
    """One incident."""

    scopes = {"GET": MAY_LOOK, "PATCH": MAY_NOTE}

    @extend_schema(operation_id="incidents_retrieve", tags=_TAGS, responses=IncidentDetailSerializer)
    def get(self, request: Request, number: int) -> Response:
        """Shows an incident."""
        return self.answer(get_incident(number))

    @extend_schema(
        operation_id="incidents_edit",
        tags=_TAGS,
        parameters=[_IF_MATCH],
        request=IncidentEditSerializer,
        responses=IncidentDetailSerializer,
    )
    def patch(self, request: Request, number: int) -> Response:
        """Changes what is known of an incident; 412 when somebody else did since it was seen."""
        body = self.validated(IncidentEditSerializer)
        revision = self.expected_revision(body.pop("revision", None))
        incident = edit_incident(
            incident=get_incident(number), changes=body, expected_revision=revision, actor=self.actor
        )
        return self.answer(incident)


class IncidentEntryListView(AssayView):
    """The log of an incident."""

    scopes = {"GET": MAY_LOOK, "POST": MAY_NOTE}

    @extend_schema(
        operation_id="incident_entries_list", tags=_TAGS, responses=page_schema(IncidentEntrySerializer)
    )
    def get(self, request: Request, number: int) -> Response:
        """Lists the log of an incident, the oldest line first."""
        entries = list_entries(get_incident(number))
        return self.page_of(entries, IncidentEntrySerializer, pagination_class=EntryPagination)

    @extend_schema(
        operation_id="incident_entries_add",
        tags=_TAGS,
        request=IncidentStepSerializer,
        responses={201: IncidentEntrySerializer},
    )
    @idempotent
    def post(self, request: Request, number: int) -> Response:
        """Notes a step that was taken."""
        body = self.validated(IncidentStepSerializer)
        entry = add_step(incident=get_incident(number), text=body["text"], actor=self.actor)
        return Response(IncidentEntrySerializer(entry).data, status=status.HTTP_201_CREATED)


class IncidentInvestigateView(IncidentAnswerView):
    """The beginning of an investigation."""

    scopes = {"POST": MAY_NOTE}

    @extend_schema(
        operation_id="incidents_investigate",
        tags=_TAGS,
        parameters=[_IF_MATCH],
        request=RevisionSerializer,
        responses=IncidentDetailSerializer,
    )
    @idempotent
    def post(self, request: Request, number: int) -> Response:
        """Says that somebody looks into it."""
        body = self.validated(RevisionSerializer)
        revision = self.expected_revision(body.get("revision"))
        return self.answer(
            begin_investigation(incident=get_incident(number), expected_revision=revision, actor=self.actor)
        )


class IncidentResolveView(IncidentAnswerView):
    """The end of an incident."""

    scopes = {"POST": (TokenScope.REVIEW,)}

    @extend_schema(
        operation_id="incidents_resolve",
        tags=_TAGS,
        parameters=[_IF_MATCH],
        request=IncidentResolveSerializer,
        responses=IncidentDetailSerializer,
    )
    @idempotent
    def post(self, request: Request, number: int) -> Response:
        """Closes an incident whose cause is known and mended."""
        body = self.validated(IncidentResolveSerializer)
        incident = resolve_incident(
            incident=get_incident(number),
            cause=body["cause"],
            fix=body["fix"],
            expected_revision=self.expected_revision(body.get("revision")),
            actor=self.actor,
        )
        return self.answer(incident)


class IncidentDismissView(IncidentAnswerView):
    """The end of what was no incident."""

    scopes = {"POST": (TokenScope.REVIEW,)}

    @extend_schema(
        operation_id="incidents_dismiss",
        tags=_TAGS,
        parameters=[_IF_MATCH],
        request=IncidentDismissSerializer,
        responses=IncidentDetailSerializer,
    )
    @idempotent
    def post(self, request: Request, number: int) -> Response:
        """Closes what turned out to be no incident; it does not count as an occurrence."""
        body = self.validated(IncidentDismissSerializer)
        incident = dismiss_incident(
            incident=get_incident(number),
            reason=body["reason"],
            expected_revision=self.expected_revision(body.get("revision")),
            actor=self.actor,
        )
        return self.answer(incident)


class IncidentCheckView(IncidentAnswerView):
    """The answer to the question for a check."""

    scopes = {"POST": (TokenScope.REVIEW,)}

    @extend_schema(
        operation_id="incidents_check",
        tags=_TAGS,
        parameters=[_IF_MATCH],
        request=CheckAnswerSerializer,
        responses=IncidentDetailSerializer,
    )
    @idempotent
    def post(self, request: Request, number: int) -> Response:
        """Says which check was made of a symptom that recurs, or why there is none."""
        body = self.validated(CheckAnswerSerializer)
        incident = answer_check(
            incident=get_incident(number),
            answer=body["answer"],
            text=body["text"],
            expected_revision=self.expected_revision(body.get("revision")),
            actor=self.actor,
        )
        return self.answer(incident)


class QuarterReviewView(AssayView):
    """The quarterly review."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(
        operation_id="incidents_quarterly",
        tags=_TAGS,
        parameters=[_QUARTER],
        responses=QuarterReviewSerializer,
    )
    def get(self, request: Request) -> Response:
        """Sums up the incidents of a quarter."""
        return Response(QuarterReviewSerializer(review_quarter(_quarter(request))).data)


class QuarterReportView(AssayView):
    """The quarterly review for reading."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(
        operation_id="incidents_quarterly_report",
        tags=_TAGS,
        parameters=[_QUARTER],
        responses={(200, "text/markdown"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> HttpResponse:
        """Gives the review of a quarter as Markdown."""
        content = write_review(review_quarter(_quarter(request))).encode()
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }
        return HttpResponse(content, content_type="text/markdown; charset=utf-8", headers=headers)


def _language(request: Request) -> str:
    return query_choice(request, "language", HandbookLanguage.values) or HandbookLanguage.EN


def _quarter(request: Request) -> Quarter:
    text = query_text(request, "quarter")
    return quarter_of(timezone.now()) if text is None else parse_quarter(text)
