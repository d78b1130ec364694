"""Artifacts in and out of the store, for workers."""

from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from registry.artifacts.stores.base import PutMode
from registry.errors import AssayError, NotFoundError, PayloadTooLarge, ValidationFailed
from registry.models import ArtifactFile, AuditEvent, Blob
from registry.services.actors import SYSTEM
from registry.services.artifacts import (
    get_store,
    ingest_folder,
    manifest_of,
    materialise_artifact,
    materialise_file,
    read_file_bytes,
)
from tests.fixtures.registry import sha256_of, store_files

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "a.txt").write_bytes(b"abc")
    (source / "sub" / "b.txt").write_bytes(b"")
    return source


@pytest.mark.parametrize("mode", list(PutMode))
def test_round_trip(folder: Path, tmp_path: Path, mode: PutMode) -> None:
    artifact = ingest_folder(folder=folder, kind="other", actor=SYSTEM, mode=mode)
    assert (artifact.num_files, artifact.size_bytes, artifact.kind) == (2, 3, "other")
    target = tmp_path / "target"
    materialise_artifact(digest=artifact.digest, folder=target)
    assert (target / "a.txt").read_bytes() == b"abc" and (target / "sub" / "b.txt").read_bytes() == b""
    assert not (target / "a.txt").stat().st_mode & 0o222
    materialise_file(digest=artifact.digest, path="a.txt", target=tmp_path / "x" / "renamed.txt")
    assert (tmp_path / "x" / "renamed.txt").read_bytes() == b"abc"
    assert read_file_bytes(digest=artifact.digest, path="a.txt", max_bytes=3) == b"abc"
    assert [file.path for file in manifest_of(artifact.digest).files] == ["a.txt", "sub/b.txt"]


def test_the_same_bytes_again(folder: Path) -> None:
    first = ingest_folder(folder=folder, kind="merged_model", actor=SYSTEM)
    second = ingest_folder(folder=folder, kind="base_model", actor=SYSTEM)
    assert first == second and second.kind == "merged_model"
    assert ArtifactFile.objects.count() == 2
    assert AuditEvent.objects.filter(action="artifact.create").count() == 1


def test_faulty_folders(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValidationFailed):
        ingest_folder(folder=empty, kind="other", actor=SYSTEM)
    (empty / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValidationFailed):
        ingest_folder(folder=empty, kind="other", actor=SYSTEM)
    assert Blob.objects.count() == 0


def test_what_is_not_there(tmp_path: Path) -> None:
    digest = store_files({"a": b"abc"}, kind="other").digest
    for path in ("b", "../a", "a\x00", ""):
        with pytest.raises(NotFoundError):
            read_file_bytes(digest=digest, path=path, max_bytes=10)
    for unknown in ("f" * 64, "../..", "\x00"):
        with pytest.raises(NotFoundError):
            materialise_artifact(digest=unknown, folder=tmp_path / "x")
    with pytest.raises(PayloadTooLarge):
        read_file_bytes(digest=digest, path="a", max_bytes=2)
    get_store().delete(sha256_of(b"abc"))
    with pytest.raises(AssayError, match="not in the store"):
        materialise_artifact(digest=digest, folder=tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("url", ["s3://bucket", "file://relative", "/plain", ""])
def test_unsupported_stores(settings: Any, url: str) -> None:
    settings.ARTIFACT_STORE = url
    with pytest.raises(ImproperlyConfigured):
        get_store()
