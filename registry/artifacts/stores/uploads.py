"""Partial uploads: files that arrive in chunks, over several requests, maybe days apart.

    ROOT/uploads/<upload id>/<sha256>.part

The length of the part file is the acknowledged offset. A chunk is appended whole or not at all: when the
connection is cut, the disk is full or the chunk has the wrong length, the part is cut back to where the chunk
began. A process that is killed in the middle of a chunk leaves some of its bytes; they are right, and the
next request goes on behind them. A lock on the part keeps two requests from writing at once. The sha256 of
the whole decides before anything becomes a blob.
"""

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from registry.artifacts.digests import HASH_CHUNK_BYTES, Readable, hash_stream, require_sha256
from registry.artifacts.errors import (
    ArtifactError,
    BlobHashMismatchError,
    UploadBusyError,
    UploadChunkError,
    UploadIncompleteError,
    UploadOffsetError,
)
from registry.artifacts.findings import shown
from registry.artifacts.stores.atomic import full_disk_as_store_full, sync_file
from registry.artifacts.stores.base import StoredBlob
from registry.artifacts.stores.local import LocalStore, check_content

_UPLOAD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


class PartialUploads:
    """The partial uploads beside a local store. Safe for several processes at once."""

    def __init__(self, store: LocalStore) -> None:
        """Take the store into which finished files go."""
        self.store = store
        self.folder = store.root / "uploads"

    def received_bytes(self, upload_id: str, sha256: str) -> int:
        """Return how many bytes of a file have been acknowledged; its whole size once it is a blob."""
        try:
            return self._part(upload_id, sha256).stat().st_size
        except FileNotFoundError:
            return self.store.size(sha256) if self.store.has(sha256) else 0

    def append(
        self,
        upload_id: str,
        sha256: str,
        stream: Readable,
        *,
        offset: int,
        length_bytes: int,
        size_bytes: int,
    ) -> int:
        """Append one chunk and return the number of bytes received so far, synced to disk.

        Args:
            upload_id: letters, digits and dashes.
            sha256: of the whole file.
            stream: gives exactly the chunk's bytes.
            offset: where the chunk starts in the file; must be what `received_bytes` says.
            length_bytes: the chunk's length.
            size_bytes: the whole file's length as declared.

        Raises:
            UploadOffsetError: the chunk starts elsewhere; `received_bytes` says where to go on.
            UploadChunkError: the stream is shorter or longer than `length_bytes`, or the chunk passes
            `size_bytes`.
            UploadBusyError: another request is appending to this file.
            StoreFullError: no room; the chunk can be sent again later.
        """
        if offset < 0 or length_bytes < 0 or offset + length_bytes > size_bytes:
            raise UploadChunkError(
                f"Bytes {offset} to {offset + length_bytes} lie outside a file of {size_bytes} bytes."
            )
        with full_disk_as_store_full(self.folder), self._locked_part(upload_id, sha256) as part:
            received = part.seek(0, os.SEEK_END)
            if received != offset:
                raise UploadOffsetError(
                    f"The chunk starts at byte {offset}, expected is byte {received}.",
                    received_bytes=received,
                )
            try:
                _copy_exactly(stream, part, length_bytes)
                sync_file(part)
            except BaseException:
                _cut_back(part, offset)
                raise
        return offset + length_bytes

    def finish(self, upload_id: str, sha256: str, *, size_bytes: int) -> StoredBlob:
        """Check the whole file and make it a blob; calling it again is harmless.

        Raises:
            UploadIncompleteError: bytes are missing.
            BlobHashMismatchError: the bytes are not those announced; they are dropped and must be sent again.
        """
        if not self._part(upload_id, sha256).exists():
            if self.store.has(sha256):
                return StoredBlob(sha256=sha256, size_bytes=self.store.size(sha256), is_new=False)
            if size_bytes > 0:
                raise UploadIncompleteError(f"0 of {size_bytes} bytes of {sha256} have arrived.")
        with self._locked_part(upload_id, sha256) as part:
            received = part.seek(0, os.SEEK_END)
            if received < size_bytes:
                raise UploadIncompleteError(f"{received} of {size_bytes} bytes of {sha256} have arrived.")
            part.seek(0)
            digest = hash_stream(part)
            path = self._part(upload_id, sha256)
            try:
                check_content(digest.sha256, digest.size_bytes, sha256=sha256, size_bytes=size_bytes)
            except BlobHashMismatchError:
                path.unlink()
                raise
            sync_file(part)
            blob = self.store.adopt(path, sha256=sha256, size_bytes=size_bytes)
            path.unlink(missing_ok=True)
        return blob

    def discard(self, upload_id: str) -> None:
        """Drop everything that was received for an upload."""
        shutil.rmtree(self._folder(upload_id), ignore_errors=True)

    def list_stale(self, *, min_age_seconds: float) -> list[str]:
        """Return the ids of uploads to which nothing was appended for so long."""
        if not self.folder.is_dir():
            return []
        limit = time.time() - min_age_seconds
        stale = []
        for entry in sorted(self.folder.iterdir()):
            with suppress(FileNotFoundError):  # finished or discarded meanwhile
                if max(path.stat().st_mtime for path in (entry, *entry.iterdir())) <= limit:
                    stale.append(entry.name)
        return stale

    def _folder(self, upload_id: str) -> Path:
        if _UPLOAD_ID.fullmatch(upload_id) is None:
            raise ArtifactError(f"{shown(upload_id)!r} is not an upload id.", code="upload-id-invalid")
        return self.folder / upload_id

    def _part(self, upload_id: str, sha256: str) -> Path:
        return self._folder(upload_id) / f"{require_sha256(sha256)}.part"

    @contextmanager
    def _locked_part(self, upload_id: str, sha256: str) -> Iterator[BinaryIO]:
        path = self._part(upload_id, sha256)
        path.parent.mkdir(parents=True, exist_ok=True)
        # "a+" so that opening never cuts the file; unbuffered so that a full disk shows at the write.
        with path.open("a+b", buffering=0) as part:
            try:
                fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _busy() from None
            if not _is_current(part, path):
                raise _busy()  # finished or dropped by another request between opening and locking
            yield part


def _busy() -> UploadBusyError:
    return UploadBusyError("Another request is sending this file; wait for it, or try again.")


def _is_current(part: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(part.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _copy_exactly(stream: Readable, part: BinaryIO, length_bytes: int) -> None:
    remaining = length_bytes
    while remaining:
        chunk = stream.read(min(remaining, HASH_CHUNK_BYTES))
        if not chunk:
            raise UploadChunkError(f"The chunk ended {remaining} bytes early; send it again.")
        _write_all(part, chunk)
        remaining -= len(chunk)
    if stream.read(1):
        raise UploadChunkError(f"The chunk is longer than the announced {length_bytes} bytes; send it again.")


def _write_all(part: BinaryIO, chunk: bytes) -> None:
    """Write every byte: an unbuffered write may take only some of them (a nearly full disk does)."""
    view = memoryview(chunk)
    while view:
        view = view[part.write(view) :]


def _cut_back(part: BinaryIO, offset: int) -> None:
    part.truncate(offset)
    os.fsync(part.fileno())
