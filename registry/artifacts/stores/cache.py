"""A local store in front of a remote one: a job finds a base model on its own disk and links to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from registry.artifacts.digests import Readable
from registry.artifacts.manifest import ArtifactManifest
from registry.artifacts.stores.base import BlobStore, LinkMode, PutMode, StoredBlob
from registry.artifacts.stores.folders import ingest_folder, materialise
from registry.artifacts.stores.local import LocalStore


class CachedStore:
    """A `BlobStore` whose truth is `remote`; what is read passes through `local`, hashed on arrival.

    A blob that arrives damaged raises BlobHashMismatchError and is not cached. Writes go to both, to `remote`
    last, so that a blob that this store acknowledges is in the remote one.
    """

    def __init__(self, *, remote: BlobStore, local: LocalStore) -> None:
        """Take the store that counts and the one on this machine's disk."""
        self.remote = remote
        self.local = local

    def has(self, sha256: str) -> bool:
        """Return whether the blob is cached or in the remote store."""
        return self.local.has(sha256) or self.remote.has(sha256)

    def size(self, sha256: str) -> int:
        """Return the blob's length in bytes, without fetching it."""
        return self.local.size(sha256) if self.local.has(sha256) else self.remote.size(sha256)

    def fetch(self, sha256: str) -> None:
        """Bring the blob into the local store, verified, by one rename; nothing happens when it is there."""
        if not self.local.has(sha256):
            with self.remote.open(sha256) as stream:
                self.local.put_stream(stream, sha256=sha256)

    def open(self, sha256: str) -> BinaryIO:
        """Fetch the blob and open it."""
        self.fetch(sha256)
        return self.local.open(sha256)

    def put_stream(
        self, stream: Readable, *, sha256: str | None = None, size_bytes: int | None = None
    ) -> StoredBlob:
        """Store a stream in both stores."""
        return self._send(self.local.put_stream(stream, sha256=sha256, size_bytes=size_bytes))

    def put_file(self, path: Path, *, mode: PutMode = PutMode.COPY, sha256: str | None = None) -> StoredBlob:
        """Store a file in both stores; with MOVE the source goes only when both have it."""
        local_mode = PutMode.LINK if mode is PutMode.MOVE else mode
        blob = self._send(self.local.put_file(path, mode=local_mode, sha256=sha256))
        if mode is PutMode.MOVE:
            path.unlink()
        return blob

    def _send(self, blob: StoredBlob) -> StoredBlob:
        with self.local.open(blob.sha256) as stream:
            return self.remote.put_stream(stream, sha256=blob.sha256, size_bytes=blob.size_bytes)

    def link_into(self, sha256: str, target: Path) -> LinkMode:
        """Fetch the blob and make it appear as `target`."""
        self.fetch(sha256)
        return self.local.link_into(sha256, target)

    def delete(self, sha256: str) -> bool:
        """Remove the blob from both stores; return whether the remote one had it."""
        self.local.delete(sha256)
        return self.remote.delete(sha256)

    def iter(self) -> Iterator[str]:
        """Yield the sha256 of every blob of the remote store, sorted."""
        return self.remote.iter()

    def materialise(self, manifest: ArtifactManifest, folder: Path) -> None:
        """Make the artifact appear as `folder` (see `folders.materialise`)."""
        materialise(self, manifest, folder)

    def ingest_folder(self, folder: Path, *, mode: PutMode = PutMode.COPY) -> ArtifactManifest:
        """Store a folder's files (see `folders.ingest_folder`)."""
        return ingest_folder(self, folder, mode=mode)
