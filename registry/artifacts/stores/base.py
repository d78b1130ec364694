"""What every blob store offers: bytes by their sha256, written once, never changed.

A store knows nothing of names, kinds or owners; those are in manifests and in the database.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Protocol

from registry.artifacts.digests import Readable


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlob:
    """A blob that is in the store.

    Attributes:
        sha256: 64 lowercase hex digits.
        size_bytes: length.
        is_new: whether this call stored it; False when it was there before.
    """

    sha256: str
    size_bytes: int
    is_new: bool


class PutMode(StrEnum):
    """How `put_file` takes a file over.

    COPY leaves the source alone. LINK makes the source the same inode as the blob (the source becomes
    read-only; nobody may write into it any more). MOVE takes the source away. LINK and MOVE fall back to COPY
    across file systems.
    """

    COPY = "copy"
    LINK = "link"
    MOVE = "move"


class LinkMode(StrEnum):
    """How `link_into` made the target: no bytes are copied except for COPY."""

    HARDLINK = "hardlink"
    SYMLINK = "symlink"
    COPY = "copy"


class BlobStore(Protocol):
    """Bytes by their sha256. Every method raises DigestError when `sha256` is not 64 lowercase hex digits."""

    def has(self, sha256: str) -> bool:
        """Return whether the blob is there."""
        ...

    def size(self, sha256: str) -> int:
        """Return the blob's length in bytes.

        Raises:
            BlobNotFoundError: there is no such blob.
        """
        ...

    def open(self, sha256: str) -> AbstractContextManager[BinaryIO]:
        """Open the blob for reading, seekable; close it (it is a context manager).

        Raises:
            BlobNotFoundError: there is no such blob.
        """
        ...

    def put_stream(
        self, stream: Readable, *, sha256: str | None = None, size_bytes: int | None = None
    ) -> StoredBlob:
        """Store a stream, read to its end.

        When `sha256` is given and the blob is there already, the stream is not read.

        Raises:
            BlobHashMismatchError: the bytes have another sha256 or length than announced; nothing is stored.
            StoreFullError: no room; nothing is stored.
        """
        ...

    def put_file(self, path: Path, *, mode: PutMode = PutMode.COPY, sha256: str | None = None) -> StoredBlob:
        """Store a file; errors as for `put_stream`."""
        ...

    def link_into(self, sha256: str, target: Path) -> LinkMode:
        """Make the blob appear, read-only, as the new file `target`; its folder must exist.

        Raises:
            BlobNotFoundError: there is no such blob.
            FileExistsError: `target` exists.
        """
        ...

    def delete(self, sha256: str) -> bool:
        """Remove the blob; return whether it was there. The caller knows that no manifest needs it."""
        ...

    def iter(self) -> Iterator[str]:
        """Yield the sha256 of every blob, sorted; blobs stored or removed meanwhile may be missed."""
        ...
