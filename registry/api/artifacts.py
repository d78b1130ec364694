"""Artifacts: their file lists and their bytes."""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView
from registry.api.streaming import stream_file
from registry.artifacts.manifest import ArtifactManifest
from registry.choices import ArtifactKind
from registry.selectors.artifacts import ARTIFACT_READERS, require_artifact_access
from registry.services.artifacts import get_artifact, get_file_entry, manifest_of, open_blob


class StoredFileSerializer(serializers.Serializer[object]):
    """One file of an artifact."""

    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()


class ArtifactSerializer(serializers.Serializer[object]):
    """An immutable set of files."""

    digest = serializers.CharField()
    kind = serializers.ChoiceField(choices=ArtifactKind.choices)
    num_files = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    files = StoredFileSerializer(many=True)


class AnyAccept(BaseContentNegotiation):
    """Answers in the one form there is, whatever `Accept` says: a file has no other form."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The first renderer (for problem documents)."""
        return renderers[0], renderers[0].media_type


class ArtifactDetailView(AssayView):
    """One artifact."""

    scopes = {"GET": ARTIFACT_READERS}

    @extend_schema(operation_id="artifacts_retrieve", tags=["artifacts"], responses=ArtifactSerializer)
    def get(self, request: Request, digest: str) -> Response:
        """Lists an artifact's files."""
        artifact = get_artifact(digest)
        require_artifact_access(actor=self.actor, digest=artifact.digest)
        return Response(artifact_json(artifact.kind, manifest_of(artifact.digest)))


class ArtifactFileView(AssayView):
    """One file of an artifact."""

    scopes = {"GET": ARTIFACT_READERS}
    content_negotiation_class = AnyAccept

    @extend_schema(
        operation_id="artifacts_download",
        tags=["artifacts"],
        responses={
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            (206, "application/octet-stream"): OpenApiTypes.BINARY,
        },
    )
    def get(self, request: Request, digest: str, path: str) -> HttpResponseBase:
        """Sends a file; `Range` and `HEAD` work, the ETag is the file's sha256."""
        entry = get_file_entry(digest=digest, path=path)
        require_artifact_access(actor=self.actor, digest=digest)
        file = open_blob(entry.sha256)
        return stream_file(
            request._request, file, size_bytes=entry.size_bytes, etag=entry.sha256, name=entry.path
        )


def artifact_json(kind: str, manifest: ArtifactManifest) -> dict[str, Any]:
    """The JSON form of an artifact."""
    return {
        "digest": manifest.digest,
        "kind": kind,
        "num_files": manifest.num_files,
        "size_bytes": manifest.size_bytes,
        "files": manifest.to_json(),
    }
