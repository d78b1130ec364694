import errno
import fcntl
import hashlib
import io
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.artifacts.digests import Readable
from registry.artifacts.errors import (
    ArtifactError,
    BlobHashMismatchError,
    StoreFullError,
    UploadBusyError,
    UploadChunkError,
    UploadIncompleteError,
    UploadOffsetError,
)
from registry.artifacts.stores import uploads as uploads_module
from registry.artifacts.stores.local import LocalStore
from registry.artifacts.stores.uploads import PartialUploads

CONTENT = bytes(range(256)) * 40  # 10,240 bytes
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def uploads(tmp_path: Path) -> PartialUploads:
    return PartialUploads(LocalStore(tmp_path / "store"))


def send(uploads: PartialUploads, begin: int, end: int, *, stream: Readable | None = None) -> int:
    return uploads.append(
        "u1",
        SHA,
        stream or io.BytesIO(CONTENT[begin:end]),
        offset=begin,
        length_bytes=end - begin,
        size_bytes=len(CONTENT),
    )


def part_of(uploads: PartialUploads) -> Path:
    return uploads.folder / "u1" / f"{SHA}.part"


def test_chunks_become_a_blob(uploads: PartialUploads) -> None:
    assert uploads.received_bytes("u1", SHA) == 0
    assert send(uploads, 0, 4_000) == 4_000
    assert uploads.received_bytes("u1", SHA) == 4_000
    assert send(uploads, 4_000, len(CONTENT)) == len(CONTENT)
    blob = uploads.finish("u1", SHA, size_bytes=len(CONTENT))
    assert blob.is_new
    assert uploads.store.is_intact(SHA)
    assert not part_of(uploads).exists()
    assert uploads.received_bytes("u1", SHA) == len(CONTENT)
    assert not uploads.finish("u1", SHA, size_bytes=len(CONTENT)).is_new


@settings(max_examples=25, deadline=None)
@given(content=st.binary(max_size=500), cuts=st.lists(st.integers(0, 500), max_size=6))
def test_any_cutting_gives_the_same_blob(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, cuts: list[int]
) -> None:
    uploads = PartialUploads(LocalStore(tmp_path_factory.mktemp("store")))
    sha256 = hashlib.sha256(content).hexdigest()
    edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    for begin, end in itertools.pairwise(edges):
        chunk = io.BytesIO(content[begin:end])
        uploads.append("u", sha256, chunk, offset=begin, length_bytes=end - begin, size_bytes=len(content))
    uploads.finish("u", sha256, size_bytes=len(content))
    with uploads.store.open(sha256) as file:
        assert file.read() == content


@pytest.mark.parametrize("offset", [0, 3_999, 4_001])
def test_a_wrong_offset_says_where_to_go_on(uploads: PartialUploads, offset: int) -> None:
    send(uploads, 0, 4_000)
    with pytest.raises(UploadOffsetError) as caught:
        send(uploads, offset, offset + 10)
    assert caught.value.received_bytes == 4_000
    assert uploads.received_bytes("u1", SHA) == 4_000


class BreakingStream:
    """Gives some bytes and then fails as a connection does."""

    def __init__(self, content: bytes, error: Exception | None) -> None:
        self.stream = io.BytesIO(content)
        self.error = error

    def read(self, size: int, /) -> bytes:
        chunk = self.stream.read(min(size, 100))
        if not chunk and self.error is not None:
            raise self.error
        return chunk


@pytest.mark.parametrize("error", [ConnectionResetError(), TimeoutError(), None])
def test_a_cut_connection_leaves_the_last_acknowledged_offset(
    uploads: PartialUploads, error: Exception | None
) -> None:
    send(uploads, 0, 4_000)
    expected = UploadChunkError if error is None else type(error)
    with pytest.raises(expected):
        send(uploads, 4_000, 8_000, stream=BreakingStream(CONTENT[4_000:5_000], error))
    assert part_of(uploads).read_bytes() == CONTENT[:4_000]
    send(uploads, 4_000, len(CONTENT))
    uploads.finish("u1", SHA, size_bytes=len(CONTENT))


def test_a_chunk_longer_than_announced_is_dropped(uploads: PartialUploads) -> None:
    with pytest.raises(UploadChunkError):
        send(uploads, 0, 100, stream=io.BytesIO(CONTENT[:101]))
    assert uploads.received_bytes("u1", SHA) == 0


@pytest.mark.parametrize(("begin", "end"), [(0, len(CONTENT) + 1), (-1, 5), (10, 5)])
def test_a_chunk_outside_the_file_is_refused(uploads: PartialUploads, begin: int, end: int) -> None:
    with pytest.raises(UploadChunkError):
        send(uploads, begin, end)
    assert not uploads.folder.exists()


def test_short_writes_are_completed_and_a_full_disk_is_cut_back(
    uploads: PartialUploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw writes may take a part only; the third one finds the disk full."""
    send(uploads, 0, 4_000)
    real_write_all = uploads_module._write_all

    class NearlyFull(io.RawIOBase):
        num_writes = 0

        def __init__(self, part: io.RawIOBase) -> None:
            self.part = part

        def write(self, data: memoryview, /) -> int:  # type: ignore[override]
            self.num_writes += 1
            if self.num_writes == 3:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.part.write(data[:1_000]) or 0

    monkeypatch.setattr(
        uploads_module,
        "_write_all",
        lambda part, chunk: real_write_all(NearlyFull(part), chunk),  # type: ignore[arg-type]
    )
    with pytest.raises(StoreFullError):
        send(uploads, 4_000, 8_000)
    assert part_of(uploads).read_bytes() == CONTENT[:4_000]
    assert send(uploads, 4_000, 6_000) == 6_000  # two short writes of 1,000
    monkeypatch.undo()
    send(uploads, 6_000, len(CONTENT))
    assert uploads.finish("u1", SHA, size_bytes=len(CONTENT)).is_new


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of one megabyte."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    folder = tmp_path / "tiny"
    folder.mkdir()
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield folder
    subprocess.run(["/bin/umount", str(folder)], check=True)


def test_a_really_full_disk(tiny_disk: Path) -> None:
    uploads = PartialUploads(LocalStore(tiny_disk / "store"))
    content = os.urandom(2 << 20)
    sha256 = hashlib.sha256(content).hexdigest()
    half = 1 << 19
    uploads.append(
        "u", sha256, io.BytesIO(content[:half]), offset=0, length_bytes=half, size_bytes=len(content)
    )
    with pytest.raises(StoreFullError):
        rest = io.BytesIO(content[half:])
        uploads.append(
            "u", sha256, rest, offset=half, length_bytes=len(content) - half, size_bytes=len(content)
        )
    assert uploads.received_bytes("u", sha256) == half
    assert (uploads.folder / "u" / f"{sha256}.part").read_bytes() == content[:half]
    with pytest.raises(StoreFullError):
        uploads.store.put_stream(io.BytesIO(content))
    assert list(uploads.store.iter()) == []
    assert list(uploads.store.temporary_folder.iterdir()) == []


_KILLED_WRITER = """
import sys, time
from pathlib import Path
from registry.artifacts.stores.local import LocalStore
from registry.artifacts.stores.uploads import PartialUploads

class Slow:
    def __init__(self):
        self.position = 4000
    def read(self, size, /):
        self.position += 500
        if self.position > 6000:
            print("half", flush=True)
            time.sleep(60)
        return (bytes(range(256)) * 40)[self.position - 500 : self.position]

PartialUploads(LocalStore(Path(sys.argv[1]))).append(
    "u1", sys.argv[2], Slow(), offset=4000, length_bytes=6240, size_bytes=10240
)
"""


def test_a_killed_writer_leaves_a_usable_part(uploads: PartialUploads) -> None:
    send(uploads, 0, 4_000)
    command = [sys.executable, "-c", _KILLED_WRITER, str(uploads.store.root), SHA]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[4]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        with pytest.raises(UploadBusyError):
            send(uploads, 4_000, 5_000)
        process.send_signal(signal.SIGKILL)
        process.wait()
    received = uploads.received_bytes("u1", SHA)
    assert received == 6_000  # four reads of 500 bytes had been written
    assert part_of(uploads).read_bytes() == CONTENT[:received]
    send(uploads, received, len(CONTENT))
    uploads.finish("u1", SHA, size_bytes=len(CONTENT))
    assert uploads.store.is_intact(SHA)


def test_finishing_too_early(uploads: PartialUploads) -> None:
    with pytest.raises(UploadIncompleteError):
        uploads.finish("u1", SHA, size_bytes=len(CONTENT))
    send(uploads, 0, 4_000)
    with pytest.raises(UploadIncompleteError):
        uploads.finish("u1", SHA, size_bytes=len(CONTENT))
    assert uploads.received_bytes("u1", SHA) == 4_000


def test_wrong_bytes_are_dropped(uploads: PartialUploads) -> None:
    send(uploads, 0, len(CONTENT), stream=io.BytesIO(bytes(len(CONTENT))))
    with pytest.raises(BlobHashMismatchError):
        uploads.finish("u1", SHA, size_bytes=len(CONTENT))
    assert uploads.received_bytes("u1", SHA) == 0
    assert not uploads.store.has(SHA)


def test_an_empty_file(uploads: PartialUploads) -> None:
    empty = hashlib.sha256(b"").hexdigest()
    assert uploads.finish("u1", empty, size_bytes=0).size_bytes == 0
    assert uploads.store.has(empty)


def test_another_writer_makes_the_part_busy(uploads: PartialUploads) -> None:
    send(uploads, 0, 4_000)
    with part_of(uploads).open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(UploadBusyError):
            send(uploads, 4_000, 5_000)
        with pytest.raises(UploadBusyError):
            uploads.finish("u1", SHA, size_bytes=len(CONTENT))
    assert send(uploads, 4_000, 5_000) == 5_000


def test_a_part_that_was_finished_between_opening_and_locking_is_not_written(
    uploads: PartialUploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the late writer would append to the blob itself, which is the same inode."""
    send(uploads, 0, len(CONTENT))
    real = fcntl.flock

    def finish_first(part: object, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        uploads.finish("u1", SHA, size_bytes=len(CONTENT))
        real(part, operation)  # type: ignore[arg-type]

    monkeypatch.setattr(fcntl, "flock", finish_first)
    with pytest.raises(UploadBusyError):
        send(uploads, len(CONTENT), len(CONTENT))
    assert uploads.store.is_intact(SHA)


@pytest.mark.parametrize("upload_id", ["", "../x", "a/b", "-a", "a" * 65, "a.b", "a\n"])
def test_upload_ids_are_plain(uploads: PartialUploads, upload_id: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        uploads.received_bytes(upload_id, SHA)
    assert caught.value.code == "upload-id-invalid"


def test_discard_and_stale(uploads: PartialUploads) -> None:
    assert uploads.list_stale(min_age_seconds=0) == []
    send(uploads, 0, 4_000)
    assert uploads.list_stale(min_age_seconds=3600) == []
    for path in (part_of(uploads), part_of(uploads).parent):
        os.utime(path, (time.time() - 7200,) * 2)
    assert uploads.list_stale(min_age_seconds=3600) == ["u1"]
    uploads.discard("u1")
    uploads.discard("u1")
    assert uploads.received_bytes("u1", SHA) == 0
