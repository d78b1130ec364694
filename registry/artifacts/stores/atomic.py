"""Writing files so that a crash or a full disk never leaves a half-written one under its final name."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from registry.artifacts.errors import StoreFullError

_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
READ_ONLY_MODE = 0o444


@contextmanager
def full_disk_as_store_full(folder: Path) -> Iterator[None]:
    """Turn "no space left" and "quota exceeded" into StoreFullError; other OSErrors pass."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL_ERRNOS:
            raise
        raise StoreFullError(
            f"No room left below {folder}: {error.strerror}. Free space and try again."
        ) from error


@contextmanager
def temporary_file(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a new file in `folder`; it is removed at the end unless it was renamed away."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / uuid4().hex
    with path.open("xb") as file:
        try:
            yield path, file
        finally:
            path.unlink(missing_ok=True)


def sync_file(file: BinaryIO) -> None:
    """Flush a file to the disk itself."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, so that a rename survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Some network file systems cannot sync a folder; the rename is then as durable as they make it.
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(source: Path, target: Path) -> None:
    """Give a finished, synced file its final name, read-only; replaces an equal one of a quicker process."""
    source.chmod(READ_ONLY_MODE)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
    sync_folder(target.parent)
