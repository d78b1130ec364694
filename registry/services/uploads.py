"""Uploads: files are declared, sent in chunks that can be resumed, and committed to one artifact.

What has arrived is told by the store (the length of a partial file), not by the rows, so a process that is
killed between the two leaves nothing inconsistent. Bytes that the store already has are not sent again,
whoever sent them
first: naming a sha256 that one could otherwise not read gives access to its bytes, which is accepted because
    a digest
of 256 bits cannot be guessed and is only told to those who may read.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from registry.artifacts.digests import Readable
from registry.artifacts.errors import (
    BlobHashMismatchError,
    ManifestError,
    StoreFullError,
    UploadBusyError,
    UploadChunkError,
    UploadIncompleteError,
    UploadOffsetError,
)
from registry.artifacts.findings import shown
from registry.artifacts.manifest import ArtifactFile, ArtifactManifest
from registry.choices import ArtifactKind, TokenScope, UploadState
from registry.errors import (
    ConflictError,
    Fault,
    NotFoundError,
    PayloadTooLarge,
    StoreFull,
    ValidationFailed,
    validation_failed,
)
from registry.models import Artifact, Blob, Upload, UploadFile
from registry.services.actors import Actor
from registry.services.artifacts import get_partial_uploads, get_store, record_artifact
from registry.services.audit import record_audit

SCOPES_OF_KIND: Mapping[str, tuple[str, ...]] = {
    ArtifactKind.ADAPTER: (TokenScope.SUBMIT,),
    ArtifactKind.DATASET: (TokenScope.SUBMIT, TokenScope.EVALUATE),
    ArtifactKind.RAW_DATA: (TokenScope.SUBMIT, TokenScope.EVALUATE),
    ArtifactKind.SUITE: (TokenScope.SUBMIT, TokenScope.EVALUATE),
    ArtifactKind.BASE_MODEL: (TokenScope.ADMIN,),
}
_EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
MAX_FAULTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProgress:
    """How much of one declared file has arrived."""

    path: str
    size_bytes: int
    sha256: str
    received_bytes: int

    @property
    def is_complete(self) -> bool:
        """Whether the store holds the whole file, its hash checked."""
        return self.received_bytes == self.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedUpload:
    """The artifact that an upload became; `is_new` is False when it had been committed before."""

    artifact: Artifact
    is_new: bool


def create_upload(*, kind: str, files: Iterable[Mapping[str, Any]], actor: Actor) -> Upload:
    """Declares the files of an upload.

    Args:
        kind: One of the keys of `SCOPES_OF_KIND`.
        files: Objects with path, size_bytes and sha256.
        actor: Needs the kind's scope.

    Raises:
        ValidationFailed: paths, sizes or hashes are at fault or a limit is passed; every fault at once.
        ScopeError: the actor may not upload this kind.
    """
    actor.require_any(SCOPES_OF_KIND[kind])
    manifest = _read_manifest(list(files))
    faults = [*_find_limit_faults(manifest), *_find_size_faults(manifest)]
    if faults:
        raise ValidationFailed("upload-invalid", faults=faults[:MAX_FAULTS], num_faults=len(faults))
    if any(file.size_bytes == 0 for file in manifest.files):
        get_store().put_stream(io.BytesIO(b""), sha256=_EMPTY_SHA256)
    with transaction.atomic():
        upload = Upload.objects.create(kind=kind, expires_at=_expiry(), created_by=actor.user)
        UploadFile.objects.bulk_create(
            [
                UploadFile(upload=upload, path=file.path, size_bytes=file.size_bytes, sha256=file.sha256)
                for file in manifest.files
            ],
            batch_size=500,
        )
        after = {"kind": kind, "num_files": manifest.num_files, "size_bytes": manifest.size_bytes}
        record_audit(actor=actor, action="upload.create", target=upload, after=after)
    return upload


def get_upload(*, upload_id: UUID, actor: Actor) -> Upload:
    """An upload of the actor; an admin sees everybody's.

    Raises:
        NotFoundError: there is none, or it is somebody else's.
    """
    upload = Upload.objects.filter(pk=upload_id).first()
    is_owner = upload is not None and actor.user is not None and upload.created_by_id == actor.user.pk
    if upload is None or not (is_owner or actor.has_scope(TokenScope.ADMIN)):
        raise NotFoundError("upload-not-found", upload_id=str(upload_id))
    return upload


def list_progress(upload: Upload) -> list[FileProgress]:
    """How much of each declared file has arrived, by path."""
    store = get_store()
    progress = []
    for row in upload.files.all():
        received = row.size_bytes if store.has(row.sha256) else 0
        if not received and row.size_bytes and upload.state == UploadState.OPEN:
            received = _received_bytes(row)
        progress.append(
            FileProgress(path=row.path, size_bytes=row.size_bytes, sha256=row.sha256, received_bytes=received)
        )
    return progress


def receive_chunk(
    *,
    upload_id: UUID,
    sha256: str,
    stream: Readable,
    offset: int,
    length_bytes: int,
    total_bytes: int | None,
    actor: Actor,
) -> FileProgress:
    """Appends one chunk of one file; checks the file's hash when its last byte has arrived.

    No transaction is held while bytes arrive. A file that the store already has is not read again.

    Args:
        upload_id: An open upload of the actor.
        sha256: Of the whole file, as declared.
        stream: Gives exactly the chunk's bytes.
        offset: Where the chunk begins in the file.
        length_bytes: The chunk's length, at most `settings.UPLOAD_CHUNK_BYTES`.
        total_bytes: The file's length as the client states it, None when it does not.
        actor: The upload's owner.

    Raises:
        ConflictError: the upload is not open; the offset is wrong (`upload-offset-mismatch`, with
            `received_bytes`); another request writes the same file.
        ValidationFailed: chunk and declaration disagree, or the hash is another (`blob-hash-mismatch`; the
            received bytes are dropped).
        PayloadTooLarge: the chunk is larger than allowed.
        StoreFull: no room; what was acknowledged before is kept.
    """
    row = _declared_file(upload_id=upload_id, sha256=sha256, actor=actor)
    if length_bytes > settings.UPLOAD_CHUNK_BYTES:
        raise PayloadTooLarge("chunk-too-large", limit_bytes=settings.UPLOAD_CHUNK_BYTES)
    if total_bytes is not None and total_bytes != row.size_bytes:
        message = f"The file was declared with {row.size_bytes} bytes; the chunk says {total_bytes}."
        raise ValidationFailed("upload-chunk-invalid", message)
    if get_store().has(sha256):
        return _acknowledge(row, row.size_bytes)
    try:
        received = _append(row, stream, offset=offset, length_bytes=length_bytes)
    except BlobHashMismatchError as error:
        _acknowledge(row, 0)
        raise ValidationFailed("blob-hash-mismatch", str(error), received_bytes=0) from error
    except UploadOffsetError as error:
        raise ConflictError("upload-offset-mismatch", received_bytes=error.received_bytes) from error
    except UploadBusyError as error:
        raise ConflictError("upload-busy") from error
    except UploadChunkError as error:
        raise ValidationFailed("upload-chunk-invalid", str(error)) from error
    except StoreFullError as error:
        raise StoreFull("store-full") from error
    return _acknowledge(row, received)


def commit_upload(*, upload_id: UUID, actor: Actor) -> CommittedUpload:
    """Makes an artifact of an upload whose files have all arrived; the digest is computed here. Repeatable.

    Raises:
        ConflictError: files are missing (`upload-incomplete`, each as a fault), or the upload has expired.
    """
    get_upload(upload_id=upload_id, actor=actor)
    with transaction.atomic():
        upload = Upload.objects.select_for_update().get(pk=upload_id)
        actor.require_any(SCOPES_OF_KIND[upload.kind])
        if upload.artifact is not None:
            return CommittedUpload(artifact=upload.artifact, is_new=False)
        if upload.state != UploadState.OPEN:
            raise ConflictError("upload-not-open", state=upload.state)
        progress = list_progress(upload)
        _require_complete(progress)
        manifest = ArtifactManifest.of(ArtifactFile(f.path, f.size_bytes, f.sha256) for f in progress)
        artifact = record_artifact(manifest=manifest, kind=upload.kind, actor=actor)
        upload.artifact, upload.state = artifact, UploadState.COMMITTED
        upload.save(update_fields=["artifact", "state"])
        record_audit(
            actor=actor,
            action="upload.commit",
            target=upload,
            before={"state": UploadState.OPEN.value},
            after={"state": UploadState.COMMITTED.value, "artifact": artifact.digest},
        )
    get_partial_uploads().discard(str(upload_id))
    return CommittedUpload(artifact=artifact, is_new=True)


def expire_uploads(*, now: datetime, actor: Actor) -> int:
    """Ends open uploads to which nothing came in time and drops their partial files; returns how many."""
    overdue = Upload.objects.filter(state=UploadState.OPEN, expires_at__lt=now)
    num_expired = 0
    for upload in overdue:
        with transaction.atomic():
            changed = Upload.objects.filter(pk=upload.pk, state=UploadState.OPEN, expires_at__lt=now).update(
                state=UploadState.EXPIRED
            )
            if changed:
                record_audit(
                    actor=actor,
                    action="upload.expire",
                    target=upload,
                    before={"state": UploadState.OPEN.value},
                    after={"state": UploadState.EXPIRED.value},
                )
        if changed:
            get_partial_uploads().discard(str(upload.pk))
            num_expired += 1
    return num_expired


def _read_manifest(files: list[Mapping[str, Any]]) -> ArtifactManifest:
    if len(files) > settings.MAX_UPLOAD_FILES:
        message = f"{len(files)} files; at most {settings.MAX_UPLOAD_FILES} are allowed."
        raise ValidationFailed(
            "upload-invalid", faults=[Fault(code="too-many-files", message=message, where="/files")]
        )
    try:
        return ArtifactManifest.from_json(files)
    except ManifestError as error:
        raise validation_failed(error, code="upload-invalid") from error


def _find_limit_faults(manifest: ArtifactManifest) -> list[Fault]:
    if manifest.size_bytes <= settings.MAX_UPLOAD_BYTES:
        return []
    message = f"{manifest.size_bytes} bytes in all; at most {settings.MAX_UPLOAD_BYTES} are allowed."
    return [Fault(code="upload-too-large", message=message, where="/files")]


def _find_size_faults(manifest: ArtifactManifest) -> list[Fault]:
    store = get_store()
    sizes: dict[str, int] = {_EMPTY_SHA256: 0}
    faults = []
    for file in manifest.files:
        known = store.size(file.sha256) if store.has(file.sha256) else file.size_bytes
        size = sizes.setdefault(file.sha256, known)
        if size != file.size_bytes or (size == 0 and file.sha256 != _EMPTY_SHA256):
            message = f"A file with sha256 {file.sha256} does not have {file.size_bytes} bytes."
            faults.append(Fault(code="size-and-hash-disagree", message=message, where=shown(file.path)))
    return faults


def _declared_file(*, upload_id: UUID, sha256: str, actor: Actor) -> UploadFile:
    upload = get_upload(upload_id=upload_id, actor=actor)
    actor.require_any(SCOPES_OF_KIND[upload.kind])
    if upload.state != UploadState.OPEN or upload.expires_at <= timezone.now():
        state = UploadState.EXPIRED if upload.state == UploadState.OPEN else upload.state
        raise ConflictError("upload-not-open", state=str(state))
    row = upload.files.filter(sha256=sha256).first()
    if row is None:
        raise NotFoundError("blob-not-declared", upload_id=str(upload_id), sha256=sha256)
    return row


def _append(row: UploadFile, stream: Readable, *, offset: int, length_bytes: int) -> int:
    received = get_partial_uploads().append(
        str(row.upload_id),
        row.sha256,
        stream,
        offset=offset,
        length_bytes=length_bytes,
        size_bytes=row.size_bytes,
    )
    return _finish(row) if received == row.size_bytes else received


def _received_bytes(row: UploadFile) -> int:
    """What the store has of a file that is not complete.

    All bytes without a checked hash are what a process leaves that is killed between the last chunk and the
    check; the check is made up for here, since the client has nothing left to send.
    """
    received = get_partial_uploads().received_bytes(str(row.upload_id), row.sha256)
    if received < row.size_bytes:
        return received
    try:
        return _finish(row)
    except (BlobHashMismatchError, UploadBusyError):
        return 0


def _finish(row: UploadFile) -> int:
    partial, name = get_partial_uploads(), str(row.upload_id)
    try:
        partial.finish(name, row.sha256, size_bytes=row.size_bytes)
    except UploadIncompleteError:
        # Another request found the hash wrong at this moment and dropped the bytes.
        return partial.received_bytes(name, row.sha256)
    Blob.objects.get_or_create(sha256=row.sha256, defaults={"size_bytes": row.size_bytes})
    return row.size_bytes


def _acknowledge(row: UploadFile, received_bytes: int) -> FileProgress:
    """Notes progress for people who look at the rows, and puts the upload's end off."""
    UploadFile.objects.filter(upload=row.upload_id, sha256=row.sha256).update(received_bytes=received_bytes)
    Upload.objects.filter(pk=row.upload_id, state=UploadState.OPEN).update(expires_at=_expiry())
    return FileProgress(
        path=row.path, size_bytes=row.size_bytes, sha256=row.sha256, received_bytes=received_bytes
    )


def _require_complete(progress: list[FileProgress]) -> None:
    missing = [file for file in progress if not file.is_complete]
    if not missing:
        return
    faults = [
        Fault(
            code="file-incomplete",
            message=f"{file.received_bytes} of {file.size_bytes} bytes have arrived.",
            where=shown(file.path),
            remedy=f"Send the rest from byte {file.received_bytes}.",
        )
        for file in missing[:MAX_FAULTS]
    ]
    raise ConflictError("upload-incomplete", faults=faults, num_missing=len(missing), num_files=len(progress))


def _expiry() -> datetime:
    return timezone.now() + timedelta(seconds=settings.UPLOAD_TTL_SECONDS)
