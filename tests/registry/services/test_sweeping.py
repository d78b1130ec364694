"""Sweeping takes orphans only."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from registry.models import Blob, Upload
from registry.services.actors import SYSTEM
from registry.services.artifacts import get_store
from registry.services.sweeping import sweep_orphans
from registry.services.uploads import create_upload, expire_uploads
from tests.fixtures.registry import make_caller, put_chunk, sha256_of, store_files

pytestmark = pytest.mark.django_db
DAY_SECONDS = 86_400.0


def store_blob(content: bytes, *, age_seconds: float) -> str:
    """An orphan: in the store, with or without a row, in no artifact."""
    sha256 = sha256_of(content)
    store = get_store()
    path = store.root / "incoming"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    store.put_file(path)
    set_age(store.path(sha256), age_seconds)
    return sha256


def set_age(path: Path, age_seconds: float) -> None:
    at = time.time() - age_seconds
    os.utime(path, (at, at))


def test_orphans_go_and_the_rest_stays() -> None:
    old, young = store_blob(b"old", age_seconds=2 * DAY_SECONDS), store_blob(b"young", age_seconds=60)
    Blob.objects.create(sha256=old, size_bytes=3)
    used = sha256_of(b"used")
    store_files({"a": b"used"}, kind="other")
    wanted = store_blob(b"wanted", age_seconds=2 * DAY_SECONDS)
    create_upload(kind="adapter", files=[{"path": "a", "size_bytes": 6, "sha256": wanted}], actor=SYSTEM)
    for sha256 in (used,):
        set_age(get_store().path(sha256), 2 * DAY_SECONDS)
    dry = sweep_orphans(min_age_seconds=DAY_SECONDS, is_dry_run=True)
    assert (dry.num_blobs, dry.size_bytes) == (1, 3) and get_store().has(old)
    assert sweep_orphans(min_age_seconds=DAY_SECONDS).num_blobs == 1
    assert set(get_store().iter()) == {young, used, wanted}
    assert not Blob.objects.filter(pk=old).exists()
    # However short the protection time is said to be, what may be in the making stays.
    assert sweep_orphans(min_age_seconds=0).num_blobs == 0


def test_partial_files_of_ended_uploads_go() -> None:
    caller = make_caller("submit")
    files = [{"path": "a", "size_bytes": 10, "sha256": "a" * 64}]
    uploads = [create_upload(kind="adapter", files=files, actor=caller.actor) for _ in range(2)]
    for upload in uploads:
        assert put_chunk(caller.client, str(upload.pk), "a" * 64, b"abc", 0, 10).status_code == 200
        folder = get_store().root / "uploads" / str(upload.pk)
        for path in (*folder.iterdir(), folder):
            set_age(path, 2 * DAY_SECONDS)
    Upload.objects.filter(pk=uploads[0].pk).update(state="expired")
    assert sweep_orphans(min_age_seconds=DAY_SECONDS).num_partial_uploads == 1
    assert [path.name for path in (get_store().root / "uploads").iterdir()] == [str(uploads[1].pk)]
    assert expire_uploads(now=timezone.now() + timedelta(days=2), actor=SYSTEM) == 1
