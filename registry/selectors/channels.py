"""Reads of channels: what they serve, what they served, and the manifest that serving pulls."""

import re
from dataclasses import dataclass

from django.db.models import QuerySet

from registry.artifacts.manifest import ArtifactManifest
from registry.errors import NotFoundError
from registry.models import Channel, Promotion
from registry.selectors.near import get_by_name
from registry.services.artifacts import manifest_of

_REVISION = re.compile(r"r(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelManifest:
    """What a channel serves now, down to the files. `files` are those of the artifact that ships."""

    channel: Channel
    promotion: Promotion
    files: ArtifactManifest


def channel_etag(channel: Channel) -> str:
    """The channel's ETag without quotes: `r` and its revision."""
    return f"r{channel.revision}"


def revision_of_etag(etag: str) -> int | None:
    """The revision that an ETag names; None for a text that is no ETag of a channel."""
    found = _REVISION.fullmatch(etag)
    return int(found.group(1)) if found else None


def list_channels() -> QuerySet[Channel, Channel]:
    """All channels with what they serve."""
    return Channel.objects.select_related(
        "current__version__adapter",
        "current__version__base_model",
        "current__artifact",
        "current__created_by",
        "current__previous__restores",
        "current__restores__previous",
    )


def get_channel(name: str) -> Channel:
    """The channel of that name.

    Raises:
        NotFoundError: there is none.
    """
    return get_by_name(list_channels(), name, code="channel-not-found")


def list_promotions(channel: Channel) -> QuerySet[Promotion, Promotion]:
    """Everything that the channel served."""
    return channel.promotions.select_related("version__adapter", "artifact", "created_by", "restores")


def find_rollback_target(channel: Channel) -> Promotion | None:
    """The promotion that a rollback goes back to; None when there is none.

    It is what was served before the promotion whose bytes are served now, so a second rollback goes further
    back instead of returning to what the first one left.
    """
    if channel.current is None:
        return None
    served = channel.current.restores or channel.current
    earlier = served.previous
    return None if earlier is None else earlier.restores or earlier


def get_manifest(name: str) -> ChannelManifest:
    """What the channel serves now.

    Raises:
        NotFoundError: there is no such channel, or nothing was promoted to it (`channel-empty`).
    """
    channel = get_channel(name)
    if channel.current is None:
        raise NotFoundError("channel-empty", name=name)
    return ChannelManifest(
        channel=channel, promotion=channel.current, files=manifest_of(channel.current.artifact_id)
    )
