import errno
import hashlib
import io
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.artifacts.digests import hash_stream
from registry.artifacts.errors import (
    BlobHashMismatchError,
    BlobNotFoundError,
    DigestError,
    FolderError,
    StoreFullError,
)
from registry.artifacts.stores import local
from registry.artifacts.stores.base import LinkMode, PutMode
from registry.artifacts.stores.local import LocalStore


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


def test_put_and_open(store: LocalStore) -> None:
    blob = store.put_stream(io.BytesIO(b"hello"))
    assert (blob.sha256, blob.size_bytes, blob.is_new) == (sha(b"hello"), 5, True)
    with store.open(blob.sha256) as file:
        assert file.read() == b"hello"
    assert store.size(blob.sha256) == 5
    assert store.path(blob.sha256) == store.root / "blobs" / blob.sha256[:2] / blob.sha256[2:]
    assert stat.S_IMODE(store.path(blob.sha256).stat().st_mode) == 0o444
    assert files_below(store.temporary_folder) == []


def test_putting_again_changes_nothing(store: LocalStore) -> None:
    first = store.put_stream(io.BytesIO(b"hello"))
    inode = store.path(first.sha256).stat().st_ino
    assert not store.put_stream(io.BytesIO(b"hello")).is_new
    assert not store.put_stream(io.BytesIO(b"not even read"), sha256=first.sha256).is_new
    assert store.path(first.sha256).stat().st_ino == inode


@settings(max_examples=25, deadline=None)
@given(contents=st.lists(st.binary(max_size=2_000), max_size=6))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]) -> None:
    store = LocalStore(tmp_path_factory.mktemp("store"))
    for content in contents:
        store.put_stream(io.BytesIO(content))
    assert list(store.iter()) == sorted({sha(content) for content in contents})
    for content in contents:
        with store.open(sha(content)) as file:
            assert file.read() == content
        assert store.is_intact(sha(content))


@pytest.mark.parametrize("announced", [{"sha256": sha(b"other")}, {"size_bytes": 4}])
def test_other_bytes_than_announced_are_not_stored(store: LocalStore, announced: dict[str, object]) -> None:
    with pytest.raises(BlobHashMismatchError):
        store.put_stream(io.BytesIO(b"hello"), **announced)  # type: ignore[arg-type]
    assert files_below(store.root) == []


def test_a_stream_that_breaks_leaves_nothing(store: LocalStore) -> None:
    class Broken:
        def __init__(self) -> None:
            self.parts = [b"x" * 100]

        def read(self, size: int, /) -> bytes:
            if self.parts:
                return self.parts.pop()
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.put_stream(Broken())
    assert files_below(store.root) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_nothing(store: LocalStore, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(local, "sync_file", full)
    with pytest.raises(StoreFullError) as caught:
        store.put_stream(io.BytesIO(b"hello"))
    assert caught.value.code == "store-full"
    assert files_below(store.root) == []


def test_other_system_errors_pass(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(local, "sync_file", broken)
    with pytest.raises(OSError, match="Input/output error"):
        store.put_stream(io.BytesIO(b"hello"))
    assert files_below(store.root) == []


def test_unknown_blobs(store: LocalStore, tmp_path: Path) -> None:
    unknown = sha(b"unknown")
    assert not store.has(unknown)
    assert not store.delete(unknown)
    assert list(store.iter()) == []
    for call in (store.open, store.size, lambda key: store.link_into(key, tmp_path / "x")):
        with pytest.raises(BlobNotFoundError):
            call(unknown)


@pytest.mark.parametrize("key", ["../../etc/passwd", "AB" * 32, "", "a/" * 32])
def test_only_digests_are_keys(store: LocalStore, key: str) -> None:
    for call in (store.has, store.size, store.open, store.delete):
        with pytest.raises(DigestError):
            call(key)


@pytest.mark.parametrize("mode", list(PutMode))
def test_put_file(store: LocalStore, tmp_path: Path, mode: PutMode) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"hello")
    inode = source.stat().st_ino
    blob = store.put_file(source, mode=mode)
    assert blob.sha256 == sha(b"hello")
    assert source.exists() is (mode is not PutMode.MOVE)
    is_same_inode = store.path(blob.sha256).stat().st_ino == inode
    assert is_same_inode is (mode is not PutMode.COPY)
    assert files_below(store.temporary_folder) == []


def test_put_file_falls_back_to_a_copy_across_file_systems(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"hello")
    _refuse_hard_links(monkeypatch)
    blob = store.put_file(source, mode=PutMode.MOVE)
    assert blob.is_new
    assert not source.exists()
    assert store.is_intact(blob.sha256)


def test_put_file_with_another_hash_keeps_the_source(store: LocalStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"hello")
    with pytest.raises(BlobHashMismatchError):
        store.put_file(source, mode=PutMode.MOVE, sha256=sha(b"other"))
    assert source.read_bytes() == b"hello"
    assert files_below(store.root) == []


def test_a_file_that_changes_while_it_is_taken_is_not_stored(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"hello")

    def hash_and_change(stream: io.BufferedReader) -> object:
        digest = hash_stream(stream)
        source.write_bytes(b"hello and more")
        return digest

    monkeypatch.setattr(local, "hash_stream", hash_and_change)
    with pytest.raises(FolderError) as caught:
        store.put_file(source, mode=PutMode.LINK)
    assert caught.value.code == "file-changed"
    assert files_below(store.root) == []


def test_link_into_shares_the_bytes(store: LocalStore, tmp_path: Path) -> None:
    blob = store.put_stream(io.BytesIO(b"hello"))
    target = tmp_path / "target"
    assert store.link_into(blob.sha256, target) is LinkMode.HARDLINK
    assert target.stat().st_ino == store.path(blob.sha256).stat().st_ino
    assert store.delete(blob.sha256)
    assert target.read_bytes() == b"hello"


def _refuse_hard_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)


def test_link_into_falls_back_to_a_symbolic_link_and_then_a_copy(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = store.put_stream(io.BytesIO(b"hello"))
    _refuse_hard_links(monkeypatch)
    assert store.link_into(blob.sha256, tmp_path / "link") is LinkMode.SYMLINK
    assert (tmp_path / "link").read_bytes() == b"hello"

    def refuse(self: Path, target: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert store.link_into(blob.sha256, tmp_path / "copy") is LinkMode.COPY
    assert (tmp_path / "copy").read_bytes() == b"hello"
    assert not (tmp_path / "copy").is_symlink()


def test_link_into_never_replaces_a_file(store: LocalStore, tmp_path: Path) -> None:
    blob = store.put_stream(io.BytesIO(b"hello"))
    (tmp_path / "target").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        store.link_into(blob.sha256, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"mine"


def test_damage_is_seen(store: LocalStore) -> None:
    blob = store.put_stream(io.BytesIO(b"hello"))
    path = store.path(blob.sha256)
    path.chmod(0o644)
    path.write_bytes(b"jello")
    assert not store.is_intact(blob.sha256)


def test_left_overs_of_a_crash_are_removed_when_old(store: LocalStore) -> None:
    store.temporary_folder.mkdir(parents=True)
    old, young = store.temporary_folder / "old", store.temporary_folder / "young"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    assert store.clear_temporary(min_age_seconds=3600) == 1
    assert not old.exists()
    assert young.exists()


def test_many_writers_of_the_same_blob(store: LocalStore) -> None:
    content = b"x" * 300_000
    threads = [threading.Thread(target=lambda: store.put_stream(io.BytesIO(content))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(store.iter()) == [sha(content)]
    assert store.is_intact(sha(content))
    assert files_below(store.temporary_folder) == []
