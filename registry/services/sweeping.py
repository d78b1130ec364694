"""Removes bytes that nothing names any more: left-overs of uploads that were never committed and of crashes.

A blob is an orphan when no artifact and no open upload names it and it is older than the protection time. Its
row is locked and deleted in the transaction in which its bytes go, and `record_artifact` locks the rows
before it looks into the store; so a blob that is being put into an artifact at the same moment is either
kept, or that request fails and is sent again.
"""

import time
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from registry.choices import UploadState
from registry.models import ArtifactFile, Blob, Upload, UploadFile
from registry.services.artifacts import get_partial_uploads, get_store

MIN_AGE_SECONDS = 3600.0
"""A blob is stored some time before rows name it; younger ones are never touched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep removed (or would remove)."""

    num_blobs: int
    size_bytes: int
    num_partial_uploads: int
    num_temporary_files: int


def sweep_orphans(*, min_age_seconds: float, is_dry_run: bool = False) -> SweepReport:
    """Removes orphaned blobs, partial files of ended uploads and temporary files of crashed processes.

    Args:
        min_age_seconds: The protection time; at least `MIN_AGE_SECONDS` is used.
        is_dry_run: Counts only.
    """
    age_seconds = max(min_age_seconds, MIN_AGE_SECONDS)
    store = get_store()
    num_blobs = size_bytes = 0
    for sha256 in _list_orphans(age_seconds):
        size = store.size(sha256)
        if is_dry_run or _remove(sha256):
            num_blobs += 1
            size_bytes += size
    stale = _list_stale_uploads(age_seconds)
    if not is_dry_run:
        for upload_id in stale:
            get_partial_uploads().discard(upload_id)
    num_temporary = 0 if is_dry_run else store.clear_temporary(min_age_seconds=age_seconds)
    return SweepReport(
        num_blobs=num_blobs,
        size_bytes=size_bytes,
        num_partial_uploads=len(stale),
        num_temporary_files=num_temporary,
    )


def _list_orphans(age_seconds: float) -> list[str]:
    store = get_store()
    limit = time.time() - age_seconds
    wanted = set(UploadFile.objects.filter(upload__state=UploadState.OPEN).values_list("sha256", flat=True))
    used = set(ArtifactFile.objects.values_list("blob_id", flat=True).distinct())
    return [
        sha256
        for sha256 in store.iter()
        if sha256 not in used and sha256 not in wanted and store.path(sha256).stat().st_mtime < limit
    ]


def _remove(sha256: str) -> bool:
    try:
        with transaction.atomic():
            list(Blob.objects.select_for_update().filter(pk=sha256))
            is_wanted = UploadFile.objects.filter(sha256=sha256, upload__state=UploadState.OPEN).exists()
            if is_wanted or ArtifactFile.objects.filter(blob=sha256).exists():
                return False
            Blob.objects.filter(pk=sha256).delete()
            return get_store().delete(sha256)
    except (ProtectedError, IntegrityError):
        return False


def _list_stale_uploads(age_seconds: float) -> list[str]:
    open_ids = {str(pk) for pk in Upload.objects.filter(state=UploadState.OPEN).values_list("pk", flat=True)}
    listed = get_partial_uploads().list_stale(min_age_seconds=age_seconds)
    return [upload_id for upload_id in listed if upload_id not in open_ids]
