"""Uploads as a client makes them: declared, resumed, verified, committed."""

import errno
import io
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from registry.artifacts.stores import uploads as store_uploads
from registry.models import Artifact, AuditEvent, Blob, Upload, UploadFile
from registry.services.actors import SYSTEM
from registry.services.artifacts import get_store
from registry.services.uploads import expire_uploads
from tests.fixtures.registry import Caller, assert_problem, make_caller, put_chunk, sha256_of, upload_files

pytestmark = pytest.mark.django_db
UPLOADS = "/api/v1/uploads"
CONTENT = b"0123456789"


@pytest.fixture
def caller() -> Caller:
    return make_caller("submit")


def declare(caller: Caller, files: dict[str, bytes], kind: str = "adapter") -> dict[str, Any]:
    declared = [{"path": p, "size_bytes": len(c), "sha256": sha256_of(c)} for p, c in files.items()]
    answer = caller.client.post(UPLOADS, {"kind": kind, "files": declared}, format="json")
    assert answer.status_code == 201, answer.content
    upload: dict[str, Any] = answer.json()
    return upload


def test_whole_way(caller: Caller) -> None:
    upload = declare(caller, {"b/a.bin": CONTENT, "empty": b""})
    assert upload["state"] == "open" and upload["artifact"] is None
    assert upload["chunk_size_bytes"] == 8 * 1024 * 1024
    by_path = {file["path"]: file for file in upload["files"]}
    assert by_path["b/a.bin"]["received_bytes"] == 0
    assert by_path["empty"]["is_complete"]
    sha = sha256_of(CONTENT)
    first = put_chunk(caller.client, upload["id"], sha, CONTENT[:4], 0, 10)
    assert first.json() == {"sha256": sha, "received_bytes": 4, "is_complete": False}
    seen = caller.client.get(f"{UPLOADS}/{upload['id']}").json()
    assert {file["path"]: file["received_bytes"] for file in seen["files"]} == {"b/a.bin": 4, "empty": 0}
    last = put_chunk(caller.client, upload["id"], sha, CONTENT[4:], 4, 10)
    assert last.json()["is_complete"]
    committed = caller.client.post(f"{UPLOADS}/{upload['id']}/commit")
    assert committed.status_code == 201
    # The canonical JSON of the sorted list of [path, size, sha256] (DESIGN section 1.2).
    empty = sha256_of(b"")
    listed = f'[["b/a.bin",10,"{sha}"],["empty",0,"{empty}"]]'
    assert committed.json() == {"artifact": sha256_of(listed.encode()), "num_files": 2, "size_bytes": 10}
    again = caller.client.post(f"{UPLOADS}/{upload['id']}/commit")
    assert again.status_code == 200 and again.json() == committed.json()
    assert caller.client.get(f"{UPLOADS}/{upload['id']}").json()["artifact"] == committed.json()["artifact"]
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"upload.create", "upload.commit", "artifact.create"} <= actions


def test_whole_file_without_content_range(caller: Caller) -> None:
    upload = declare(caller, {"a": CONTENT})
    url = f"{UPLOADS}/{upload['id']}/blobs/{sha256_of(CONTENT)}"
    answer = caller.client.generic("PUT", url, CONTENT, content_type="application/octet-stream")
    assert answer.json()["is_complete"]


def test_what_is_stored_already_is_not_sent_again(caller: Caller) -> None:
    digest = upload_files(caller.client, "adapter", {"a": CONTENT})
    upload = declare(caller, {"a": CONTENT})
    assert upload["files"][0]["is_complete"]
    # A client that sends it nevertheless is told that it is complete, whatever it sends.
    answer = put_chunk(caller.client, upload["id"], sha256_of(CONTENT), b"xx", 0, 10)
    assert answer.status_code == 200 and answer.json()["is_complete"]
    assert caller.client.post(f"{UPLOADS}/{upload['id']}/commit").json()["artifact"] == digest
    assert Artifact.objects.count() == 1


def test_two_paths_with_the_same_bytes(caller: Caller) -> None:
    digest = upload_files(caller.client, "adapter", {"a": CONTENT, "b": CONTENT})
    assert Artifact.objects.get(digest=digest).num_files == 2
    assert Blob.objects.count() == 1


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/passwd",
        "a/../../b",
        "a\\b",
        "C:/x",
        "a//b",
        "./a",
        "a/",
        "",
        "a\nb",
        "x" * 256,
        "CON",
        "a/.",
    ],
)
def test_paths_that_are_refused(caller: Caller, path: str, store: Path) -> None:
    files = [{"path": path, "size_bytes": 1, "sha256": "a" * 64}]
    answer = caller.client.post(UPLOADS, {"kind": "adapter", "files": files}, format="json")
    assert answer.status_code == 422
    assert Upload.objects.count() == 0 and not store.exists()


def test_all_faults_at_once(caller: Caller) -> None:
    files = [
        {"path": "../x", "size_bytes": 1, "sha256": "a" * 64},
        {"path": "same", "size_bytes": 1, "sha256": "b" * 64},
        {"path": "same", "size_bytes": 1, "sha256": "b" * 64},
        {"path": "/abs", "size_bytes": 1, "sha256": "c" * 64},
    ]
    answer = caller.client.post(UPLOADS, {"kind": "adapter", "files": files}, format="json")
    codes = {error["code"] for error in assert_problem(answer, 422, "upload-invalid")["errors"]}
    assert codes == {"path-traversal", "path-duplicate", "path-absolute"}


def test_limits(caller: Caller, settings: Any) -> None:
    settings.MAX_UPLOAD_FILES, settings.MAX_UPLOAD_BYTES = 2, 100
    files = [{"path": f"f{i}", "size_bytes": 1, "sha256": f"{i:064x}"} for i in range(3)]
    answer = caller.client.post(UPLOADS, {"kind": "adapter", "files": files}, format="json")
    assert assert_problem(answer, 422, "upload-invalid")["errors"][0]["code"] == "too-many-files"
    files = [{"path": "f", "size_bytes": 101, "sha256": "a" * 64}]
    answer = caller.client.post(UPLOADS, {"kind": "adapter", "files": files}, format="json")
    assert assert_problem(answer, 422, "upload-invalid")["errors"][0]["code"] == "upload-too-large"


def test_size_that_does_not_fit_the_hash(caller: Caller) -> None:
    upload_files(caller.client, "adapter", {"a": CONTENT})
    files = [
        {"path": "a", "size_bytes": 11, "sha256": sha256_of(CONTENT)},
        {"path": "b", "size_bytes": 1, "sha256": "b" * 64},
        {"path": "c", "size_bytes": 2, "sha256": "b" * 64},
        {"path": "d", "size_bytes": 0, "sha256": "d" * 64},
    ]
    answer = caller.client.post(UPLOADS, {"kind": "adapter", "files": files}, format="json")
    errors = assert_problem(answer, 422, "upload-invalid")["errors"]
    assert {(error["code"], error["where"]) for error in errors} == {
        ("size-and-hash-disagree", place) for place in "acd"
    }


def test_wrong_offset_tells_the_right_one(caller: Caller) -> None:
    upload = declare(caller, {"a": CONTENT})
    sha = sha256_of(CONTENT)
    put_chunk(caller.client, upload["id"], sha, CONTENT[:4], 0, 10)
    for offset in (0, 2, 6):
        answer = put_chunk(caller.client, upload["id"], sha, CONTENT[offset : offset + 2], offset, 10)
        assert assert_problem(answer, 409, "upload-offset-mismatch")["received_bytes"] == 4


def test_wrong_hash_drops_the_bytes(caller: Caller) -> None:
    upload = declare(caller, {"a": CONTENT})
    sha = sha256_of(CONTENT)
    answer = put_chunk(caller.client, upload["id"], sha, b"9876543210", 0, 10)
    assert assert_problem(answer, 422, "blob-hash-mismatch")["received_bytes"] == 0
    assert not get_store().has(sha) and Blob.objects.count() == 0
    assert put_chunk(caller.client, upload["id"], sha, CONTENT, 0, 10).json()["is_complete"]


def test_bytes_that_arrived_without_their_check_are_checked_later(caller: Caller) -> None:
    """A process was killed between the last chunk and the check of the hash."""
    upload = declare(caller, {"a": CONTENT, "b": b"bad content"})
    for content, arrived in ((CONTENT, CONTENT), (b"bad content", b"BAD CONTENT")):
        store_uploads.PartialUploads(get_store()).append(
            upload["id"], sha256_of(content), io.BytesIO(arrived), offset=0, length_bytes=len(arrived),
            size_bytes=len(arrived),
        )  # fmt: skip
    files = caller.client.get(f"{UPLOADS}/{upload['id']}").json()["files"]
    assert [(file["received_bytes"], file["is_complete"]) for file in files] == [(10, True), (0, False)]


@pytest.mark.parametrize(
    ("header", "status", "code"),
    [
        ("bytes 0-9", 400, "content-range-invalid"),
        ("bytes 5-4/10", 400, "content-range-invalid"),
        ("bytes 0-10/10", 400, "content-range-invalid"),
        ("bytes 0-8/10", 400, "content-range-invalid"),
        ("items 0-9/10", 400, "content-range-invalid"),
        ("bytes 0-9/11", 422, "upload-chunk-invalid"),
    ],
)
def test_content_range(caller: Caller, header: str, status: int, code: str) -> None:
    upload = declare(caller, {"a": CONTENT})
    answer = caller.client.generic(
        "PUT",
        f"{UPLOADS}/{upload['id']}/blobs/{sha256_of(CONTENT)}",
        CONTENT,
        content_type="application/octet-stream",
        headers={"Content-Range": header},
    )
    assert_problem(answer, status, code)


def test_chunk_too_large(caller: Caller, settings: Any) -> None:
    settings.UPLOAD_CHUNK_BYTES = 4
    upload = declare(caller, {"a": CONTENT})
    answer = put_chunk(caller.client, upload["id"], sha256_of(CONTENT), CONTENT, 0, 10)
    assert assert_problem(answer, 413, "chunk-too-large")["limit_bytes"] == 4


def test_commit_before_all_has_arrived(caller: Caller) -> None:
    upload = declare(caller, {"a": CONTENT, "b": b"bb"})
    put_chunk(caller.client, upload["id"], sha256_of(CONTENT), CONTENT[:3], 0, 10)
    document = assert_problem(
        caller.client.post(f"{UPLOADS}/{upload['id']}/commit"), 409, "upload-incomplete"
    )
    assert [(error["where"], error["message"]) for error in document["errors"]] == [
        ("a", "3 of 10 bytes have arrived."),
        ("b", "0 of 2 bytes have arrived."),
    ]
    assert Artifact.objects.count() == 0


def test_disk_full_keeps_what_was_acknowledged(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = declare(caller, {"a": CONTENT})
    sha = sha256_of(CONTENT)
    put_chunk(caller.client, upload["id"], sha, CONTENT[:4], 0, 10)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(store_uploads, "_write_all", full)
        answer = put_chunk(caller.client, upload["id"], sha, CONTENT[4:], 4, 10)
        assert_problem(answer, 507, "store-full")
    seen = caller.client.get(f"{UPLOADS}/{upload['id']}").json()["files"][0]
    assert seen["received_bytes"] == 4 and UploadFile.objects.get().received_bytes == 4
    assert put_chunk(caller.client, upload["id"], sha, CONTENT[4:], 4, 10).json()["is_complete"]


def test_other_peoples_uploads_are_not_there(caller: Caller) -> None:
    upload = declare(caller, {"a": CONTENT})
    stranger, admin = make_caller("submit"), make_caller("admin")
    assert_problem(stranger.client.get(f"{UPLOADS}/{upload['id']}"), 404, "upload-not-found")
    answer = put_chunk(stranger.client, upload["id"], sha256_of(CONTENT), CONTENT, 0, 10)
    assert_problem(answer, 404, "upload-not-found")
    assert_problem(stranger.client.post(f"{UPLOADS}/{upload['id']}/commit"), 404, "upload-not-found")
    assert admin.client.get(f"{UPLOADS}/{upload['id']}").status_code == 200


def test_base_models_are_for_admins(caller: Caller) -> None:
    files = [{"path": "config.json", "size_bytes": 1, "sha256": "a" * 64}]
    answer = caller.client.post(UPLOADS, {"kind": "base_model", "files": files}, format="json")
    assert_problem(answer, 403, "scope-missing")


def test_undeclared_blob(caller: Caller) -> None:
    upload = declare(caller, {"a": CONTENT})
    answer = put_chunk(caller.client, upload["id"], "b" * 64, b"x", 0, 1)
    assert_problem(answer, 404, "blob-not-declared")
    answer = put_chunk(caller.client, upload["id"], "..%2f..%2fetc", b"x", 0, 1)
    assert_problem(answer, 404, "not-found" if answer.json()["code"] == "not-found" else "blob-not-declared")


def test_expired_upload(caller: Caller, store: Path) -> None:
    upload = declare(caller, {"a": CONTENT})
    put_chunk(caller.client, upload["id"], sha256_of(CONTENT), CONTENT[:4], 0, 10)
    later = timezone.now() + timedelta(days=2)
    assert expire_uploads(now=later, actor=SYSTEM) == 1
    assert expire_uploads(now=later, actor=SYSTEM) == 0
    assert not list((store / "uploads").iterdir())
    answer = put_chunk(caller.client, upload["id"], sha256_of(CONTENT), CONTENT[4:], 4, 10)
    assert_problem(answer, 409, "upload-not-open")
    assert_problem(caller.client.post(f"{UPLOADS}/{upload['id']}/commit"), 409, "upload-not-open")
