"""Artifacts: the rows that name stored bytes, and the ways in and out of the store for services and workers.

Artifacts never change. The kind is the one under which the bytes were stored first; it informs people and is
not part of the identity, so whoever uses an artifact looks at its content, not at its kind.
"""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from registry.artifacts.digests import is_sha256
from registry.artifacts.errors import (
    ArtifactError,
    BlobNotFoundError,
    FolderError,
    ManifestError,
    StoreFullError,
)
from registry.artifacts.findings import shown
from registry.artifacts.manifest import ArtifactFile as FileEntry
from registry.artifacts.manifest import ArtifactManifest
from registry.artifacts.paths import is_safe_path
from registry.artifacts.stores.base import PutMode
from registry.artifacts.stores.folders import materialise
from registry.artifacts.stores.local import LocalStore
from registry.artifacts.stores.uploads import PartialUploads
from registry.errors import AssayError, NotFoundError, PayloadTooLarge, StoreFull, validation_failed
from registry.models import Artifact, ArtifactFile, Blob
from registry.services.actors import Actor
from registry.services.audit import record_audit


def get_store() -> LocalStore:
    """The blob store that `settings.ARTIFACT_STORE` names (`file:///folder`)."""
    return _open_store(settings.ARTIFACT_STORE)


def get_partial_uploads() -> PartialUploads:
    """The unfinished uploads beside the store."""
    return PartialUploads(get_store())


def manifest_of(digest: str) -> ArtifactManifest:
    """The files of an artifact.

    Raises:
        NotFoundError: there is no such artifact.
    """
    rows = ArtifactFile.objects.filter(artifact=get_artifact(digest))
    listed = rows.values_list("path", "blob__size_bytes", "blob_id")
    files = [FileEntry(path, size_bytes, sha256) for path, size_bytes, sha256 in listed]
    return ArtifactManifest.of(files)


def record_artifact(*, manifest: ArtifactManifest, kind: str, actor: Actor) -> Artifact:
    """Makes the rows of an artifact whose blobs are in the store; returns the existing one when it is known.

    Raises:
        AssayError: a blob is not in the store (code `blob-missing`); nothing is recorded.
    """
    with transaction.atomic():
        Blob.objects.bulk_create(
            [Blob(sha256=sha256, size_bytes=size) for sha256, size in _sizes(manifest.files).items()],
            ignore_conflicts=True,
        )
        # The rows are locked before the look into the store, so a sweep cannot take a blob away in between.
        list(Blob.objects.select_for_update().filter(sha256__in=_sizes(manifest.files)).order_by("sha256"))
        _require_blobs(manifest)
        artifact, is_new = Artifact.objects.get_or_create(
            digest=manifest.digest,
            defaults={
                "kind": kind,
                "num_files": manifest.num_files,
                "size_bytes": manifest.size_bytes,
                "created_by": actor.user,
            },
        )
        if is_new:
            ArtifactFile.objects.bulk_create(
                [ArtifactFile(artifact=artifact, path=f.path, blob_id=f.sha256) for f in manifest.files],
                batch_size=500,
            )
            record_audit(
                actor=actor,
                action="artifact.create",
                target=artifact,
                after={"kind": kind, "num_files": manifest.num_files, "size_bytes": manifest.size_bytes},
            )
    return artifact


def ingest_folder(*, folder: Path, kind: str, actor: Actor, mode: PutMode = PutMode.COPY) -> Artifact:
    """Stores all files of a folder as one artifact; the same bytes again give the same artifact.

    Args:
        folder: All files in it and below.
        kind: An `ArtifactKind`.
        actor: For `created_by` and the audit log.
        mode: COPY leaves the folder alone; LINK and MOVE take its files over without copying (outputs of a
            job).

    Raises:
        ValidationFailed: the folder is empty or holds names that are not allowed.
        StoreFull: no room.
    """
    try:
        manifest = get_store().ingest_folder(folder, mode=mode)
    except (FolderError, ManifestError) as error:
        raise validation_failed(error) from error
    except StoreFullError as error:
        raise StoreFull("store-full") from error
    return record_artifact(manifest=manifest, kind=kind, actor=actor)


def materialise_artifact(*, digest: str, folder: Path) -> None:
    """Makes an artifact appear as `folder` (new or empty), its files read-only links to the blobs.

    Raises:
        NotFoundError: there is no such artifact.
        AssayError: blobs are missing from the store, or `folder` is not empty.
        StoreFull: no room.
    """
    try:
        materialise(get_store(), manifest_of(digest), folder)
    except StoreFullError as error:
        raise StoreFull("store-full") from error
    except ArtifactError as error:
        raise AssayError(error.code, str(error)) from error


def materialise_file(*, digest: str, path: str, target: Path) -> None:
    """Makes one file of an artifact appear as `target`, a new read-only file; its folder is made when
    missing.

    Raises:
        NotFoundError: there is no such artifact or file.
        AssayError: its blob is missing from the store.
    """
    entry = get_file_entry(digest=digest, path=path)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        get_store().link_into(entry.sha256, target)
    except StoreFullError as error:
        raise StoreFull("store-full") from error
    except BlobNotFoundError as error:
        raise AssayError("blob-missing", str(error)) from error


def read_file_bytes(*, digest: str, path: str, max_bytes: int) -> bytes:
    """The content of one file of an artifact.

    Raises:
        NotFoundError: there is no such artifact or file.
        PayloadTooLarge: the file is larger than `max_bytes`.
    """
    entry = get_file_entry(digest=digest, path=path)
    if entry.size_bytes > max_bytes:
        raise PayloadTooLarge(
            "file-too-large",
            f"{path} has {entry.size_bytes} bytes; at most {max_bytes} are read.",
            limit_bytes=max_bytes,
        )
    with open_blob(entry.sha256) as file:
        return file.read()


def open_blob(sha256: str) -> BinaryIO:
    """A stored blob, open for reading; whoever asked for it closes it.

    Raises:
        AssayError: it is not in the store although rows name it (`blob-missing`).
    """
    try:
        return get_store().open(sha256)
    except BlobNotFoundError as error:
        raise AssayError("blob-missing", str(error)) from error


def get_file_entry(*, digest: str, path: str) -> FileEntry:
    """Path, size and sha256 of one file of an artifact.

    Raises:
        NotFoundError: there is no such artifact or file.
    """
    artifact = get_artifact(digest)
    rows = ArtifactFile.objects.filter(artifact=artifact).select_related("blob")
    row = rows.filter(path=path).first() if is_safe_path(path) else None
    if row is None:
        raise NotFoundError("file-not-found", digest=digest, path=shown(path))
    return FileEntry(row.path, row.blob.size_bytes, row.blob_id)


def get_artifact(digest: str) -> Artifact:
    """The artifact of that digest.

    Raises:
        NotFoundError: there is none.
    """
    artifact = Artifact.objects.filter(digest=digest).first() if is_sha256(digest) else None
    if artifact is None:
        raise NotFoundError("artifact-not-found", digest=shown(digest))
    return artifact


def _sizes(files: Iterable[FileEntry]) -> dict[str, int]:
    return {file.sha256: file.size_bytes for file in files}


def _require_blobs(manifest: ArtifactManifest) -> None:
    store = get_store()
    missing = [file.path for file in manifest.files if not store.has(file.sha256)]
    if missing:
        raise AssayError(
            "blob-missing", f"{len(missing)} files are not in the store any more; send them again."
        )


@functools.lru_cache(maxsize=4)
def _open_store(url: str) -> LocalStore:
    # The path is taken as it stands: settings put a folder's name behind the scheme without quoting it.
    path = url.removeprefix("file://")
    if path == url or not path.startswith("/"):
        raise ImproperlyConfigured(f"ARTIFACT_STORE={url!r} is not supported; use file:///folder.")
    return LocalStore(Path(path))
