"""Downloads: whole, in parts, as HEAD, under WSGI and under ASGI, by who may."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient

from registry.api import streaming
from registry.services.artifacts import get_store
from tests.fixtures.registry import (
    Caller,
    assert_problem,
    make_base_model,
    make_caller,
    make_shippable_version,
    sha256_of,
    store_files,
)

pytestmark = pytest.mark.django_db
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def caller() -> Caller:
    return make_caller("pull")


@pytest.fixture
def url() -> str:
    digest = store_files({'a/数据 "x".bin': CONTENT, "empty": b""}, kind="other").digest
    return f"/api/v1/artifacts/{digest}"


def file_url(url: str) -> str:
    return f"{url}/files/a/%E6%95%B0%E6%8D%AE%20%22x%22.bin"


def test_file_list(caller: Caller, url: str) -> None:
    document = caller.client.get(url).json()
    assert document["num_files"] == 2 and document["size_bytes"] == len(CONTENT)
    assert document["files"][0] == {
        "path": 'a/数据 "x".bin',
        "size_bytes": len(CONTENT),
        "sha256": sha256_of(CONTENT),
    }


def test_whole_file(caller: Caller, url: str) -> None:
    answer = caller.client.get(file_url(url))
    assert answer.status_code == 200 and answer.streaming
    assert b"".join(answer.streaming_content) == CONTENT
    assert answer["ETag"] == f'"{sha256_of(CONTENT)}"'
    assert answer["Content-Length"] == str(len(CONTENT))
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Accept-Ranges"] == "bytes"
    # RFC 6266: a name that is not ASCII is percent-encoded; the folder is left out.
    assert answer["Content-Disposition"] == "attachment; filename*=utf-8''%E6%95%B0%E6%8D%AE%20%22x%22.bin"


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        ("bytes=10000-", 10000, 10239),
        ("bytes=-5", 10235, 10239),
        ("bytes=-99999", 0, 10239),
        ("bytes=5-99999", 5, 10239),
    ],
)
def test_ranges(caller: Caller, url: str, header: str, first: int, last: int) -> None:
    answer = caller.client.get(file_url(url), headers={"Range": header})
    assert answer.status_code == 206
    assert answer["Content-Range"] == f"bytes {first}-{last}/10240"
    assert answer["Content-Length"] == str(last - first + 1)
    assert b"".join(answer.streaming_content) == CONTENT[first : last + 1]


@pytest.mark.parametrize("header", ["bytes=10240-", "bytes=-0"])
def test_ranges_behind_the_end(caller: Caller, url: str, header: str) -> None:
    answer = caller.client.get(file_url(url), headers={"Range": header})
    assert answer.status_code == 416
    assert answer["Content-Range"] == "bytes */10240"


@pytest.mark.parametrize("header", ["bytes=5-2", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=a-b"])
def test_ranges_that_are_ignored(caller: Caller, url: str, header: str) -> None:
    answer = caller.client.get(file_url(url), headers={"Range": header})
    assert answer.status_code == 200
    assert len(b"".join(answer.streaming_content)) == len(CONTENT)


def test_if_range(caller: Caller, url: str) -> None:
    etag = f'"{sha256_of(CONTENT)}"'
    same = caller.client.get(file_url(url), headers={"Range": "bytes=0-1", "If-Range": etag})
    other = caller.client.get(file_url(url), headers={"Range": "bytes=0-1", "If-Range": '"x"'})
    assert (same.status_code, other.status_code) == (206, 200)


def test_head_and_not_modified(caller: Caller, url: str) -> None:
    head = caller.client.head(file_url(url))
    assert head.status_code == 200 and head.content == b""
    assert head["Content-Length"] == str(len(CONTENT))
    fresh = caller.client.get(file_url(url), headers={"If-None-Match": f'"{sha256_of(CONTENT)}"'})
    assert fresh.status_code == 304


def test_empty_file(caller: Caller, url: str) -> None:
    answer = caller.client.get(f"{url}/files/empty")
    assert answer.status_code == 200 and b"".join(answer.streaming_content) == b""
    assert caller.client.get(f"{url}/files/empty", headers={"Range": "bytes=0-"}).status_code == 416


def test_any_accept_header_gets_the_file(caller: Caller, url: str) -> None:
    answer = caller.client.get(f"{url}/files/empty", headers={"Accept": "image/png"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "path", ["nope", "../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "a%00b", "%2e%2e/x", "a\\b"]
)
def test_paths_that_are_not_there(caller: Caller, url: str, path: str) -> None:
    answer = caller.client.get(f"{url}/files/{path}")
    assert answer.status_code == 404
    assert answer.json()["code"] in ("file-not-found", "not-found", "artifact-not-found")


@pytest.mark.parametrize("digest", ["a" * 64, "nonsense", "A" * 64, "%00"])
def test_unknown_artifact(caller: Caller, digest: str) -> None:
    assert_problem(caller.client.get(f"/api/v1/artifacts/{digest}"), 404, "artifact-not-found")


def test_bytes_that_vanished_are_our_fault(caller: Caller, url: str, store: Path) -> None:
    get_store().delete(sha256_of(CONTENT))
    caller.client.raise_request_exception = False
    assert_problem(caller.client.get(file_url(url)), 500, "blob-missing")


def test_limited_tokens_do_not_get_other_adapters_bytes() -> None:
    version = make_shippable_version("tickets")
    assert version.merged_artifact is not None
    mine, other = make_caller("pull", adapters=("tickets",)), make_caller("pull", adapters=("others",))
    for artifact in (version.artifact, version.merged_artifact):
        for path in ("", f"/files/{artifact.files.all()[0].path}"):
            url = f"/api/v1/artifacts/{artifact.digest}{path}"
            assert mine.client.get(url).status_code == 200
            assert_problem(other.client.get(url), 403, "adapter-out-of-scope")
    base = make_base_model()
    assert other.client.get(f"/api/v1/artifacts/{base.artifact_id}").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_under_asgi_a_file_is_streamed_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "CHUNK_BYTES", 4096)
    text = make_caller("pull").text
    digest = store_files({"a.bin": CONTENT}, kind="other").digest

    client: Any = AsyncClient()

    async def fetch() -> list[bytes]:
        headers = {"Authorization": f"Bearer {text}", "Range": "bytes=1-"}
        answer = await client.get(f"/api/v1/artifacts/{digest}/files/a.bin", headers=headers)
        assert answer.status_code == 206 and answer.is_async
        chunks = [chunk async for chunk in answer.streaming_content]
        # The view ran in a thread of this loop, whose connection nobody else closes.
        await sync_to_async(connections.close_all)()
        return chunks

    chunks = asyncio.run(fetch())
    assert b"".join(chunks) == CONTENT[1:]
    assert max(map(len, chunks)) <= 4096
