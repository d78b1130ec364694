"""Uploads: declare, send chunks, commit."""

import re
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView
from registry.api.idempotency import idempotent
from registry.api.strict import DigestField, StrictSerializer
from registry.artifacts.paths import MAX_PATH_CHARS
from registry.choices import TokenScope, UploadState
from registry.errors import AssayError
from registry.models import Upload
from registry.services.uploads import (
    SCOPES_OF_KIND,
    FileProgress,
    commit_upload,
    create_upload,
    get_upload,
    list_progress,
    receive_chunk,
)

_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_UPLOADERS = (TokenScope.SUBMIT.value, TokenScope.EVALUATE.value)


class DeclaredFileSerializer(StrictSerializer):
    """One file that is to be sent."""

    path = serializers.CharField(trim_whitespace=False, max_length=4 * MAX_PATH_CHARS)
    size_bytes = serializers.IntegerField(min_value=0, max_value=2**60)
    sha256 = DigestField()


class UploadRequestSerializer(StrictSerializer):
    """The declaration of an upload."""

    kind = serializers.ChoiceField(choices=[str(kind) for kind in SCOPES_OF_KIND])
    files = DeclaredFileSerializer(many=True, allow_empty=False)


class FileProgressSerializer(serializers.Serializer[Any]):
    """How much of a declared file has arrived."""

    path = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    received_bytes = serializers.IntegerField()
    is_complete = serializers.BooleanField()


class UploadSerializer(serializers.Serializer[Upload]):
    """An upload. `artifact` is the digest once it is committed, else null."""

    id = serializers.UUIDField()
    kind = serializers.CharField()
    state = serializers.ChoiceField(choices=UploadState.choices)
    chunk_size_bytes = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField()
    files = serializers.SerializerMethodField()
    artifact = serializers.CharField(source="artifact_id", allow_null=True)

    def get_chunk_size_bytes(self, upload: Upload) -> int:
        """The largest chunk that the server takes."""
        return int(settings.UPLOAD_CHUNK_BYTES)

    @extend_schema_field(FileProgressSerializer(many=True))
    def get_files(self, upload: Upload) -> Any:
        """The declared files."""
        return FileProgressSerializer(list_progress(upload), many=True).data


class BlobProgressSerializer(serializers.Serializer[FileProgress]):
    """What the server has of a file after a chunk."""

    sha256 = serializers.CharField()
    received_bytes = serializers.IntegerField()
    is_complete = serializers.BooleanField()


class CommittedSerializer(serializers.Serializer[object]):
    """The artifact that an upload became."""

    artifact = serializers.CharField()
    num_files = serializers.IntegerField()
    size_bytes = serializers.IntegerField()


class UploadListView(AssayView):
    """Where uploads are declared."""

    scopes = {"POST": _UPLOADERS}

    @extend_schema(
        operation_id="uploads_create",
        tags=["uploads"],
        request=UploadRequestSerializer,
        responses={201: UploadSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Declares files; the answer says which of them the server still needs."""
        body = self.validated(UploadRequestSerializer)
        upload = create_upload(kind=body["kind"], files=body["files"], actor=self.actor)
        location = request.build_absolute_uri(f"{request.path}/{upload.pk}")
        return Response(
            UploadSerializer(upload).data, status=status.HTTP_201_CREATED, headers={"Location": location}
        )


class UploadDetailView(AssayView):
    """One upload."""

    scopes = {"GET": _UPLOADERS}

    @extend_schema(operation_id="uploads_retrieve", tags=["uploads"], responses=UploadSerializer)
    def get(self, request: Request, upload_id: UUID) -> Response:
        """Says how far the upload is; a client that lost its connection goes on from there."""
        return Response(UploadSerializer(get_upload(upload_id=upload_id, actor=self.actor)).data)


class UploadBlobView(AssayView):
    """One file of an upload."""

    scopes = {"PUT": _UPLOADERS}

    @extend_schema(
        operation_id="uploads_send_chunk",
        tags=["uploads"],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        parameters=[
            OpenApiParameter(
                "Content-Range",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="`bytes FIRST-LAST/TOTAL`; may be left out when the chunk is the whole file.",
            )
        ],
        responses=BlobProgressSerializer,
    )
    def put(self, request: Request, upload_id: UUID, sha256: str) -> Response:
        """Takes one chunk; a wrong offset is answered by 409 with `received_bytes`."""
        http = request._request
        offset, length_bytes, total_bytes = _read_range(http)
        progress = receive_chunk(
            upload_id=upload_id,
            sha256=sha256,
            stream=http,
            offset=offset,
            length_bytes=length_bytes,
            total_bytes=total_bytes,
            actor=self.actor,
        )
        return Response(BlobProgressSerializer(progress).data)


class UploadCommitView(AssayView):
    """The end of an upload."""

    scopes = {"POST": _UPLOADERS}

    @extend_schema(
        operation_id="uploads_commit",
        tags=["uploads"],
        request=None,
        responses={200: CommittedSerializer, 201: CommittedSerializer},
    )
    @idempotent
    def post(self, request: Request, upload_id: UUID) -> Response:
        """Makes an artifact of the files; committing again gives the same artifact with 200."""
        committed = commit_upload(upload_id=upload_id, actor=self.actor)
        artifact = committed.artifact
        content = {
            "artifact": artifact.digest,
            "num_files": artifact.num_files,
            "size_bytes": artifact.size_bytes,
        }
        return Response(content, status=status.HTTP_201_CREATED if committed.is_new else status.HTTP_200_OK)


def _read_range(request: HttpRequest) -> tuple[int, int, int | None]:
    """Offset, length and total of the chunk, in bytes.

    Raises:
        AssayError: the headers do not say that (411 without a length, 400 otherwise).
    """
    length_text = request.headers.get("Content-Length", "")
    header = request.headers.get("Content-Range")
    if header is None:
        if not length_text.isdigit():
            raise AssayError("length-required", "Send Content-Length or Content-Range.", status=411)
        return 0, int(length_text), int(length_text)
    found = _CONTENT_RANGE.fullmatch(header.strip())
    if found is None or int(found[1]) > int(found[2]) or int(found[2]) >= int(found[3]):
        message = "Content-Range must be 'bytes FIRST-LAST/TOTAL' with FIRST <= LAST < TOTAL."
        raise AssayError("content-range-invalid", message, status=400)
    length_bytes = int(found[2]) - int(found[1]) + 1
    if length_text.isdigit() and int(length_text) != length_bytes:
        message = f"Content-Range names {length_bytes} bytes, Content-Length {length_text}."
        raise AssayError("content-range-invalid", message, status=400)
    return int(found[1]), length_bytes, int(found[3])
