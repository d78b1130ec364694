"""Decisions, overrides and promotions over REST."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.api.serializers import (
    DecisionSerializer,
    OverrideCreateSerializer,
    OverrideSerializer,
    PromoteSerializer,
    RecomputationSerializer,
)
from evaluation.selectors.decisions import get_decision, get_override, list_overrides
from evaluation.services.decisions import recompute_decision
from evaluation.services.overrides import confirm_override, request_override
from evaluation.services.promotion import promote
from registry.api.base import AssayView, expected_revision, page_schema
from registry.api.channels import IF_MATCH, ChannelSerializer, channel_response
from registry.api.idempotency import idempotent
from registry.choices import TokenScope
from registry.selectors.channels import get_channel


class DecisionView(AssayView):
    """One decision."""

    scopes = {"GET": (TokenScope.READ,)}

    @extend_schema(operation_id="decisions_retrieve", tags=["decisions"], responses=DecisionSerializer)
    def get(self, request: Request, decision_id: UUID) -> Response:
        """Shows a decision."""
        return Response(DecisionSerializer(get_decision(decision_id)).data)


class DecisionRecomputeView(AssayView):
    """Deciding again."""

    scopes = {"POST": (TokenScope.READ,)}

    @extend_schema(
        operation_id="decisions_recompute",
        tags=["decisions"],
        request=None,
        responses=RecomputationSerializer,
    )
    @idempotent
    def post(self, request: Request, decision_id: UUID) -> Response:
        """Applies the same rules to what is stored and compares; nothing is changed."""
        recomputation = recompute_decision(decision=get_decision(decision_id), actor=self.actor)
        return Response(RecomputationSerializer(recomputation).data)


class OverrideListView(AssayView):
    """All overrides."""

    scopes = {
        "GET": (TokenScope.READ,),
        "POST": (TokenScope.PROMOTE,),
    }

    @extend_schema(
        operation_id="overrides_list", tags=["overrides"], responses=page_schema(OverrideSerializer)
    )
    def get(self, request: Request) -> Response:
        """Lists overrides, newest first."""
        return self.page_of(list_overrides(), OverrideSerializer)

    @extend_schema(
        operation_id="overrides_create",
        tags=["overrides"],
        request=OverrideCreateSerializer,
        responses={201: OverrideSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Asks that a decision be set aside; another person has to confirm it."""
        body = self.validated(OverrideCreateSerializer)
        override = request_override(
            decision=get_decision(body["decision"]), reason=body["reason"], actor=self.actor
        )
        return Response(OverrideSerializer(override).data, status=status.HTTP_201_CREATED)


class OverrideView(AssayView):
    """One override."""

    scopes = {"GET": (TokenScope.READ,)}

    @extend_schema(operation_id="overrides_retrieve", tags=["overrides"], responses=OverrideSerializer)
    def get(self, request: Request, override_id: int) -> Response:
        """Shows an override."""
        return Response(OverrideSerializer(get_override(override_id)).data)


class OverrideConfirmView(AssayView):
    """Confirming one override."""

    scopes = {"POST": (TokenScope.PROMOTE,)}

    @extend_schema(
        operation_id="overrides_confirm", tags=["overrides"], request=None, responses=OverrideSerializer
    )
    @idempotent
    def post(self, request: Request, override_id: int) -> Response:
        """Confirms, as the second person, that a decision may be set aside."""
        override = confirm_override(override=get_override(override_id), actor=self.actor)
        return Response(OverrideSerializer(override).data)


class ChannelPromoteView(AssayView):
    """Promoting to one channel."""

    scopes = {"POST": (TokenScope.PROMOTE,)}

    @extend_schema(
        operation_id="channels_promote",
        tags=["channels"],
        parameters=[IF_MATCH],
        request=PromoteSerializer,
        responses=ChannelSerializer,
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        """Lets a channel serve an adapter version that passed, or whose decision two people set aside."""
        revision = expected_revision(request, get_channel(name))
        body = self.validated(PromoteSerializer)
        channel = promote(
            channel_name=name,
            adapter_name=body["adapter"],
            version_number=body["version"],
            expected_revision=revision,
            reason=body["reason"],
            override=body["override"],
            actor=self.actor,
        )
        return channel_response(channel, request)
