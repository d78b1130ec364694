"""A blob store in a folder of this machine.

    ROOT/blobs/ab/cdef…      one file per blob, read-only, named by its sha256
    ROOT/tmp/…               files being written; left-overs of a crash may be removed with `clear_temporary`
    ROOT/uploads/…           partial uploads (see `uploads`)

A blob appears by one rename of a complete, hashed and synced file; so whatever is under blobs/ is whole. All
of ROOT must be on one file system.
"""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from registry.artifacts.digests import Readable, hash_stream, is_sha256, require_sha256
from registry.artifacts.errors import BlobHashMismatchError, BlobNotFoundError, FolderError
from registry.artifacts.findings import shown
from registry.artifacts.manifest import ArtifactManifest
from registry.artifacts.stores.atomic import (
    READ_ONLY_MODE,
    full_disk_as_store_full,
    publish,
    sync_file,
    temporary_file,
)
from registry.artifacts.stores.base import LinkMode, PutMode, StoredBlob
from registry.artifacts.stores.folders import ingest_folder, materialise

# Reasons for which a hard link cannot be made although the target is fine: other file system,
# protected_hardlinks, too many links, no support.
_NO_LINK_ERRNOS = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}
)


class LocalStore:
    """A `BlobStore` below one folder. Safe for several processes at once; nothing is kept in memory."""

    def __init__(self, root: Path) -> None:
        """Take the folder; it is made when the first blob is written."""
        self.root = root.absolute()
        self.blobs_folder = self.root / "blobs"
        self.temporary_folder = self.root / "tmp"

    def path(self, sha256: str) -> Path:
        """Return where the blob is or would be. For reading only; never write there."""
        require_sha256(sha256)
        return self.blobs_folder / sha256[:2] / sha256[2:]

    def has(self, sha256: str) -> bool:
        """Return whether the blob is there."""
        return self.path(sha256).is_file()

    def size(self, sha256: str) -> int:
        """Return the blob's length in bytes; BlobNotFoundError when it is not there."""
        try:
            return self.path(sha256).stat().st_size
        except FileNotFoundError:
            raise _not_found(sha256) from None

    def open(self, sha256: str) -> BinaryIO:
        """Open the blob for reading; BlobNotFoundError when it is not there."""
        try:
            return self.path(sha256).open("rb")
        except FileNotFoundError:
            raise _not_found(sha256) from None

    def put_stream(
        self, stream: Readable, *, sha256: str | None = None, size_bytes: int | None = None
    ) -> StoredBlob:
        """Store a stream (see `BlobStore.put_stream`)."""
        if sha256 is not None and self.has(sha256):
            return StoredBlob(sha256=sha256, size_bytes=self.size(sha256), is_new=False)
        with full_disk_as_store_full(self.root), temporary_file(self.temporary_folder) as (temporary, file):
            digest = hash_stream(stream, sink=file.write)
            check_content(digest.sha256, digest.size_bytes, sha256=sha256, size_bytes=size_bytes)
            sync_file(file)
            return self.adopt(temporary, sha256=digest.sha256, size_bytes=digest.size_bytes)

    def put_file(self, path: Path, *, mode: PutMode = PutMode.COPY, sha256: str | None = None) -> StoredBlob:
        """Store a file (see `BlobStore.put_file` and `PutMode`)."""
        if mode is not PutMode.COPY:
            blob = self._take_inode(path, mode=mode, sha256=sha256)
            if blob is not None:
                return blob
        with path.open("rb") as file:
            blob = self.put_stream(file, sha256=sha256)
        if mode is PutMode.MOVE:
            path.unlink()
        return blob

    def _take_inode(self, path: Path, *, mode: PutMode, sha256: str | None) -> StoredBlob | None:
        """Store a file without copying it; None when the file system does not allow that."""
        if path.is_symlink():
            return None  # its target may be on another file system, and is not ours to take
        self.temporary_folder.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            digest = hash_stream(file)
            check_content(digest.sha256, digest.size_bytes, sha256=sha256)
            os.fsync(file.fileno())
            temporary = self.temporary_folder / f"link-{digest.sha256}-{os.getpid()}-{time.monotonic_ns()}"
            try:
                temporary.hardlink_to(path)
            except OSError as error:
                if error.errno in _NO_LINK_ERRNOS:
                    return None
                raise
            try:
                after = temporary.stat()
                if (before.st_ino, before.st_size, before.st_mtime_ns) != (
                    after.st_ino,
                    after.st_size,
                    after.st_mtime_ns,
                ):
                    raise FolderError(f"{shown(path)} changed while it was stored.", code="file-changed")
                blob = self.adopt(temporary, sha256=digest.sha256, size_bytes=digest.size_bytes)
            finally:
                temporary.unlink(missing_ok=True)
        if mode is PutMode.MOVE:
            path.unlink()
        return blob

    def adopt(self, temporary: Path, *, sha256: str, size_bytes: int) -> StoredBlob:
        """Give a complete, hashed and synced file below ROOT its place among the blobs."""
        target = self.path(sha256)
        if target.is_file():
            return StoredBlob(sha256=sha256, size_bytes=size_bytes, is_new=False)
        with full_disk_as_store_full(self.root):
            publish(temporary, target)
        return StoredBlob(sha256=sha256, size_bytes=size_bytes, is_new=True)

    def link_into(self, sha256: str, target: Path) -> LinkMode:
        """Make the blob appear as `target`: hard link, else symbolic link, else copy."""
        source = self.path(sha256)
        if not source.is_file():
            raise _not_found(sha256)
        try:
            target.hardlink_to(source)
        except OSError as error:
            if error.errno not in _NO_LINK_ERRNOS:
                raise
        else:
            return LinkMode.HARDLINK
        try:
            target.symlink_to(source)
        except OSError as error:
            if error.errno not in _NO_LINK_ERRNOS:
                raise
        else:
            return LinkMode.SYMLINK
        with full_disk_as_store_full(target.parent):
            shutil.copyfile(source, target)
        target.chmod(READ_ONLY_MODE)
        return LinkMode.COPY

    def delete(self, sha256: str) -> bool:
        """Remove the blob; return whether it was there. Files linked to it keep their bytes."""
        try:
            self.path(sha256).unlink()
        except FileNotFoundError:
            return False
        return True

    def iter(self) -> Iterator[str]:
        """Yield the sha256 of every blob, sorted."""
        if not self.blobs_folder.is_dir():
            return
        for shard in sorted(self.blobs_folder.iterdir()):
            if shard.is_dir():
                names = (shard.name + entry.name for entry in sorted(shard.iterdir()))
                yield from (name for name in names if is_sha256(name))

    def is_intact(self, sha256: str) -> bool:
        """Read the whole blob and return whether it still has its sha256."""
        with self.open(sha256) as file:
            return hash_stream(file).sha256 == sha256

    def clear_temporary(self, *, min_age_seconds: float) -> int:
        """Remove what crashed processes left in tmp/; return how many. Younger files may still be written."""
        num_removed = 0
        if self.temporary_folder.is_dir():
            for entry in self.temporary_folder.iterdir():
                with suppress(FileNotFoundError):
                    if time.time() - entry.stat().st_mtime >= min_age_seconds:
                        entry.unlink()
                        num_removed += 1
        return num_removed

    def materialise(self, manifest: ArtifactManifest, folder: Path) -> None:
        """Make the artifact appear as `folder` (see `folders.materialise`)."""
        materialise(self, manifest, folder)

    def ingest_folder(self, folder: Path, *, mode: PutMode = PutMode.COPY) -> ArtifactManifest:
        """Store a folder's files (see `folders.ingest_folder`)."""
        return ingest_folder(self, folder, mode=mode)


def check_content(
    found_sha256: str, found_bytes: int, *, sha256: str | None, size_bytes: int | None = None
) -> None:
    """Raise BlobHashMismatchError unless the content is the announced one; None announces nothing."""
    if size_bytes is not None and found_bytes != size_bytes:
        raise BlobHashMismatchError(
            f"{found_bytes} bytes arrived, {size_bytes} were announced; nothing was stored. Send the "
            "file again."
        )
    if sha256 is not None and found_sha256 != sha256:
        raise BlobHashMismatchError(
            f"The bytes have sha256 {found_sha256}, announced was {sha256}; nothing was stored. "
            "The file changed or was damaged on the way: send it again."
        )


def _not_found(sha256: str) -> BlobNotFoundError:
    return BlobNotFoundError(f"There is no blob {sha256} in the store.")
