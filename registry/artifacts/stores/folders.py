"""Artifacts as folders: linking an artifact's blobs into a work folder, and storing what a folder holds."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

from registry.artifacts.errors import BlobNotFoundError, FolderError
from registry.artifacts.findings import Finding, shown
from registry.artifacts.manifest import ArtifactFile, ArtifactManifest
from registry.artifacts.paths import check_paths
from registry.artifacts.stores.base import BlobStore, PutMode


def materialise(store: BlobStore, manifest: ArtifactManifest, folder: Path) -> None:
    """Make an artifact appear as `folder`; its files are read-only links to blobs where possible.

    The folder appears at once, complete, by one rename: an interrupted call leaves nothing under that name.
    It must not exist, or be empty. Programs must not write into its files: a hard link is the blob itself.

    Raises:
        BlobNotFoundError: blobs are missing; `details` names every one.
        FolderError: `folder` exists and is not empty.
        StoreFullError: no room.
    """
    missing = [file for file in manifest.files if not store.has(file.sha256)]
    if missing:
        details = [
            Finding.error("blob-not-found", f"Blob {file.sha256} is missing.", where=shown(file.path))
            for file in missing
        ]
        raise BlobNotFoundError(
            f"{len(missing)} of {manifest.num_files} files of artifact {manifest.digest} are not in the "
            "store.",
            details=details,
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderError(f"{folder} exists and is not an empty folder.", code="folder-not-empty")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.parent / f".{folder.name}.{uuid4().hex}.tmp"
    temporary.mkdir()
    try:
        for file in manifest.files:
            target = temporary / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            store.link_into(file.sha256, target)
        temporary.replace(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def ingest_folder(store: BlobStore, folder: Path, *, mode: PutMode = PutMode.COPY) -> ArtifactManifest:
    """Store every file of a folder, streaming, and return the artifact's manifest.

    Names are checked before the first byte is stored. Symbolic links are followed to files inside the folder
    only.

    Args:
        store: where the blobs go.
        folder: all files in it and below belong to the artifact.
        mode: COPY for a folder of somebody else, MOVE or LINK for outputs of a job that has ended.

    Raises:
        FolderError: no such folder, or it holds something that is no file of it (a link that leaves it, a
        device, a pipe).
        ManifestError: the folder is empty or a name is not allowed; `details` names every fault.
        StoreFullError: no room; files stored before stay as unreferenced blobs.
    """
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder.", code="folder-missing")
    sources = list(_list_files(folder))
    findings = check_paths(path for path, _ in sources)
    if findings:
        raise FolderError(f"{folder} holds files with names that are not allowed.", details=findings)
    files = []
    for path, source in sources:
        blob = store.put_file(source, mode=PutMode.COPY if source.is_symlink() else mode)
        files.append(ArtifactFile(path, blob.size_bytes, blob.sha256))
    return ArtifactManifest.of(files)


def _list_files(folder: Path) -> Iterator[tuple[str, Path]]:
    root = folder.resolve()
    for parent, folders, names in os.walk(folder, followlinks=False, onerror=_raise):
        folders.sort()
        linked = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in [*linked, *sorted(names)]:
            source = Path(parent) / name
            path = source.relative_to(folder).as_posix()
            if not source.resolve().is_relative_to(root):
                raise FolderError(f"{shown(path)} is a link that leaves the folder.", code="symlink-outside")
            if not stat.S_ISREG(source.stat().st_mode):
                raise FolderError(f"{shown(path)} is not a regular file.", code="file-not-regular")
            yield path, source


def _raise(error: OSError) -> None:
    raise FolderError(
        f"{error.filename} cannot be read: {error.strerror}.", code="folder-unreadable"
    ) from error
