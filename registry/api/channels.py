"""Channels: what serving pulls. Promotion needs a decision and lives in the evaluation app's API."""

from typing import Any
from urllib.parse import quote

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from registry.api.artifacts import StoredFileSerializer
from registry.api.base import AssayView, expected_revision, is_unchanged, page_schema
from registry.api.idempotency import idempotent
from registry.api.strict import NameField, ReasonField, StrictSerializer
from registry.choices import PromotionKind, ServingForm, TokenScope
from registry.models import Channel, Promotion
from registry.selectors.channels import (
    ChannelManifest,
    channel_etag,
    get_channel,
    get_manifest,
    list_channels,
    list_promotions,
)
from registry.services.channels import create_channel, rollback_channel

READERS = (TokenScope.READ.value, TokenScope.PROMOTE.value, TokenScope.PULL.value)
IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, required=True, description="The channel's ETag."
)


class ChannelRequestSerializer(StrictSerializer):
    """A channel that is to be made."""

    name = NameField()
    form = serializers.ChoiceField(choices=ServingForm.choices, default=ServingForm.MERGED.value)


class RollbackRequestSerializer(StrictSerializer):
    """A rollback. `to_promotion` null goes back to the promotion before the present one."""

    reason = ReasonField()
    to_promotion = serializers.IntegerField(min_value=1, max_value=2**31 - 1, allow_null=True, default=None)


class CurrentSerializer(serializers.Serializer[Promotion]):
    """What a channel serves. `promoted_by` is null for what the system did."""

    adapter = serializers.CharField(source="version.adapter.name")
    version = serializers.IntegerField(source="version.number")
    promotion_id = serializers.IntegerField(source="pk")
    promoted_at = serializers.DateTimeField(source="created_at")
    promoted_by = serializers.SerializerMethodField()
    is_override = serializers.SerializerMethodField()

    def get_promoted_by(self, promotion: Promotion) -> str | None:
        """The user's name."""
        return None if promotion.created_by is None else promotion.created_by.get_username()

    def get_is_override(self, promotion: Promotion) -> bool:
        """Whether a person set the verdict aside."""
        return bool(promotion.override_reason)


class ChannelSerializer(serializers.Serializer[Channel]):
    """A channel. `current` is null until something is promoted."""

    name = serializers.CharField()
    form = serializers.ChoiceField(choices=ServingForm.choices)
    etag = serializers.SerializerMethodField()
    current = CurrentSerializer(allow_null=True)
    history_url = serializers.SerializerMethodField()

    def get_etag(self, channel: Channel) -> str:
        """What `If-Match` must hold to change the channel."""
        return channel_etag(channel)

    @extend_schema_field(OpenApiTypes.URI)
    def get_history_url(self, channel: Channel) -> str:
        """Where the history is."""
        return reverse("channel-history", kwargs={"name": channel.name}, request=self.context.get("request"))


class PromotionSerializer(CurrentSerializer):
    """One row of a channel's history. `restores` is the promotion that a rollback brought back, else null."""

    kind = serializers.ChoiceField(choices=PromotionKind.choices)
    revision = serializers.IntegerField()
    artifact = serializers.CharField(source="artifact_id")
    decision_id = serializers.UUIDField(allow_null=True)
    verdict = serializers.CharField()
    reason = serializers.CharField()
    override_reason = serializers.CharField()
    previous = serializers.IntegerField(source="previous_id", allow_null=True)
    restores = serializers.IntegerField(source="restores_id", allow_null=True)


class ManifestFileSerializer(StoredFileSerializer):
    """One file that serving pulls."""

    url = serializers.URLField()


class ManifestBaseModelSerializer(serializers.Serializer[object]):
    """The base model under the adapter."""

    name = serializers.CharField()
    artifact = serializers.CharField()


class ManifestDecisionSerializer(serializers.Serializer[object]):
    """The decision that allowed the promotion; `id` is null when none was recorded."""

    id = serializers.UUIDField(allow_null=True)
    verdict = serializers.CharField()


class ManifestSerializer(serializers.Serializer[object]):
    """What a channel serves now, down to the files."""

    channel = serializers.CharField()
    etag = serializers.CharField()
    form = serializers.ChoiceField(choices=ServingForm.choices)
    base_model = ManifestBaseModelSerializer()
    adapter = serializers.CharField()
    version = serializers.IntegerField()
    artifact = serializers.CharField()
    files = ManifestFileSerializer(many=True)
    decision = ManifestDecisionSerializer()
    promoted_at = serializers.DateTimeField()


def channel_response(channel: Channel, request: Request, *, code: int = status.HTTP_200_OK) -> Response:
    """A channel with its ETag; also for the promote endpoint of the evaluation app."""
    content = ChannelSerializer(channel, context={"request": request}).data
    return Response(content, status=code, headers={"ETag": f'"{channel_etag(channel)}"'})


class ChannelListView(AssayView):
    """All channels."""

    scopes = {"GET": READERS, "POST": (TokenScope.ADMIN,)}

    @extend_schema(operation_id="channels_list", tags=["channels"], responses=page_schema(ChannelSerializer))
    def get(self, request: Request) -> Response:
        """Lists channels, newest first."""
        return self.page_of(list_channels(), ChannelSerializer)

    @extend_schema(
        operation_id="channels_create",
        tags=["channels"],
        request=ChannelRequestSerializer,
        responses={200: ChannelSerializer, 201: ChannelSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Makes a channel; the same name and form again give the same channel with 200."""
        body = self.validated(ChannelRequestSerializer)
        channel, is_new = create_channel(name=body["name"], form=body["form"], actor=self.actor)
        return channel_response(
            channel, request, code=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        )


class ChannelDetailView(AssayView):
    """One channel."""

    scopes = {"GET": READERS}

    @extend_schema(operation_id="channels_retrieve", tags=["channels"], responses=ChannelSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Shows what a channel serves; the ETag is what a change must send as `If-Match`."""
        return channel_response(get_channel(name), request)


class ChannelHistoryView(AssayView):
    """What a channel served."""

    scopes = {"GET": READERS}

    @extend_schema(
        operation_id="channels_history", tags=["channels"], responses=page_schema(PromotionSerializer)
    )
    def get(self, request: Request, name: str) -> Response:
        """Lists promotions and rollbacks, newest first."""
        return self.page_of(list_promotions(get_channel(name)), PromotionSerializer)


class ChannelRollbackView(AssayView):
    """Going back."""

    scopes = {"POST": (TokenScope.PROMOTE,)}

    @extend_schema(
        operation_id="channels_rollback",
        tags=["channels"],
        parameters=[IF_MATCH],
        request=RollbackRequestSerializer,
        responses=ChannelSerializer,
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        """Makes the channel serve again what an earlier promotion brought."""
        body = self.validated(RollbackRequestSerializer)
        channel = rollback_channel(
            channel_name=name,
            expected_revision=expected_revision(request, get_channel(name)),
            reason=body["reason"],
            to_promotion=body["to_promotion"],
            actor=self.actor,
        )
        return channel_response(channel, request)


class ChannelManifestView(AssayView):
    """What serving pulls."""

    scopes = {"GET": (TokenScope.PULL,)}

    @extend_schema(operation_id="channels_manifest", tags=["channels"], responses=ManifestSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Names every file to serve; 304 when `If-None-Match` holds the present ETag."""
        manifest = get_manifest(name)
        self.actor.require(TokenScope.PULL, manifest.promotion.version.adapter.name)
        etag = channel_etag(manifest.channel)
        headers = {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache"}
        if is_unchanged(request, etag):
            return Response(status=status.HTTP_304_NOT_MODIFIED, headers=headers)
        return Response(ManifestSerializer(_manifest_json(manifest, request)).data, headers=headers)


def _manifest_json(manifest: ChannelManifest, request: Request) -> dict[str, Any]:
    promotion, channel = manifest.promotion, manifest.channel
    base_model = promotion.version.base_model
    root = reverse("artifact-detail", kwargs={"digest": promotion.artifact_id}, request=request)
    files = [{**file.to_json(), "url": f"{root}/files/{quote(file.path)}"} for file in manifest.files.files]
    return {
        "channel": channel.name,
        "etag": channel_etag(channel),
        "form": channel.form,
        "base_model": {"name": base_model.name, "artifact": base_model.artifact_id},
        "adapter": promotion.version.adapter.name,
        "version": promotion.version.number,
        "artifact": promotion.artifact_id,
        "files": files,
        "decision": {"id": promotion.decision_id, "verdict": promotion.verdict},
        "promoted_at": promotion.created_at,
    }
