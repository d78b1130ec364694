import io
from pathlib import Path

import pytest

from registry.artifacts.errors import BlobHashMismatchError, BlobNotFoundError
from registry.artifacts.stores.base import BlobStore, PutMode
from registry.artifacts.stores.cache import CachedStore
from registry.artifacts.stores.local import LocalStore


@pytest.fixture
def remote(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "remote")


@pytest.fixture
def cached(tmp_path: Path, remote: LocalStore) -> CachedStore:
    return CachedStore(remote=remote, local=LocalStore(tmp_path / "local"))


def test_both_stores_have_the_protocol(cached: CachedStore) -> None:
    stores: list[BlobStore] = [cached, cached.local]
    assert all(list(store.iter()) == [] for store in stores)


def test_a_remote_blob_is_fetched_once(cached: CachedStore, remote: LocalStore, tmp_path: Path) -> None:
    blob = remote.put_stream(io.BytesIO(b"hello"))
    assert cached.has(blob.sha256)
    assert cached.size(blob.sha256) == 5
    assert not cached.local.has(blob.sha256)  # asking does not fetch
    cached.link_into(blob.sha256, tmp_path / "target")
    assert (tmp_path / "target").stat().st_ino == cached.local.path(blob.sha256).stat().st_ino
    remote.delete(blob.sha256)
    with cached.open(blob.sha256) as file:
        assert file.read() == b"hello"


def test_a_blob_damaged_in_the_remote_store_is_not_cached(cached: CachedStore, remote: LocalStore) -> None:
    blob = remote.put_stream(io.BytesIO(b"hello"))
    remote.path(blob.sha256).chmod(0o644)
    remote.path(blob.sha256).write_bytes(b"jello")
    with pytest.raises(BlobHashMismatchError):
        cached.open(blob.sha256)
    assert not cached.local.has(blob.sha256)
    assert list(cached.local.temporary_folder.iterdir()) == []


def test_writes_go_to_both(cached: CachedStore, remote: LocalStore, tmp_path: Path) -> None:
    blob = cached.put_stream(io.BytesIO(b"hello"))
    assert blob.is_new
    source = tmp_path / "source"
    source.write_bytes(b"file")
    moved = cached.put_file(source, mode=PutMode.MOVE)
    assert not source.exists()
    for sha256 in (blob.sha256, moved.sha256):
        assert remote.is_intact(sha256)
        assert cached.local.is_intact(sha256)
    assert list(cached.iter()) == sorted([blob.sha256, moved.sha256])


def test_a_blob_that_is_only_cached_is_sent_when_put_again(cached: CachedStore, remote: LocalStore) -> None:
    blob = cached.put_stream(io.BytesIO(b"hello"))
    remote.delete(blob.sha256)
    assert cached.put_stream(io.BytesIO(b"hello"), sha256=blob.sha256).is_new
    assert remote.has(blob.sha256)


def test_delete_and_unknown(cached: CachedStore, remote: LocalStore) -> None:
    blob = cached.put_stream(io.BytesIO(b"hello"))
    assert cached.delete(blob.sha256)
    assert not cached.has(blob.sha256)
    assert not cached.delete(blob.sha256)
    with pytest.raises(BlobNotFoundError):
        cached.open(blob.sha256)


def test_folders(cached: CachedStore, remote: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_bytes(b"a")
    manifest = cached.ingest_folder(tmp_path / "in")
    fresh = CachedStore(remote=remote, local=LocalStore(tmp_path / "other-machine"))
    fresh.materialise(manifest, tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_bytes() == b"a"
