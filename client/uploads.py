"""Uploads: hash, declare, send what the server lacks in resumable chunks, commit.

An upload goes on where it stopped: after a dropped connection, after a restart of the server, and (by the
journal) after the client itself was stopped. What ends up stored is checked against the digest computed here.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from client.api import AssayApi
from client.errors import AssayApiError, UploadError
from client.findings import detail_of
from client.models import Upload, UploadedBlob
from client.progress import SilentTransferProgress, TransferProgress, format_bytes
from registry.artifacts.digests import hash_stream
from registry.artifacts.errors import ManifestError
from registry.artifacts.findings import shown
from registry.artifacts.manifest import ArtifactFile, ArtifactManifest

MAX_CHUNK_BYTES = 8 * 1024 * 1024
# Each wrong offset is answered with the right one, so a second in a row at the same place means confusion,
# not delay.
_MAX_STALLS = 10
_BUSY_PAUSE_SECONDS = 2.0
_MAX_HASH_MISMATCHES = 2
_UPLOAD_GONE_STATUSES = frozenset({404, 410})


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFiles:
    """Files on this machine under the names that they get in the artifact.

    Attributes:
        manifest: Paths, sizes and hashes as read when they were hashed.
        sources: The file for each path.
    """

    manifest: ArtifactManifest
    sources: Mapping[str, Path]

    def by_sha256(self) -> dict[str, tuple[Path, int]]:
        """Return one source and size per different content."""
        return {file.sha256: (self.sources[file.path], file.size_bytes) for file in self.manifest.files}


class UploadJournal(Protocol):
    """Remembers unfinished uploads between runs of the client."""

    def find(self, key: str) -> str | None:
        """Return the id of the unfinished upload under this key, or None."""
        ...

    def remember(self, key: str, upload_id: str) -> None:
        """Keep the id of an upload that begins."""
        ...

    def forget(self, key: str) -> None:
        """Drop what is kept under this key; nothing there is fine."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryJournal:
    """Journal that lasts as long as the process."""

    entries: dict[str, str] = field(default_factory=dict)

    def find(self, key: str) -> str | None:
        """Return the kept id, or None."""
        return self.entries.get(key)

    def remember(self, key: str, upload_id: str) -> None:
        """Keep the id."""
        self.entries[key] = upload_id

    def forget(self, key: str) -> None:
        """Drop the id."""
        self.entries.pop(key, None)


@dataclass(frozen=True, slots=True)
class FolderJournal:
    """Journal of one small file per unfinished upload. A journal that cannot be read or written is as good
    as empty.
    """

    folder: Path

    def find(self, key: str) -> str | None:
        """Return the kept id, or None."""
        try:
            value = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        upload_id = value.get("upload_id") if isinstance(value, dict) else None
        return upload_id if isinstance(upload_id, str) else None

    def remember(self, key: str, upload_id: str) -> None:
        """Keep the id."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / f"{key}.json").write_text(json.dumps({"upload_id": upload_id}), encoding="utf-8")
        except OSError:
            # The journal only saves time; a read-only home must not stop an upload.
            return

    def forget(self, key: str) -> None:
        """Drop the id."""
        try:
            (self.folder / f"{key}.json").unlink(missing_ok=True)
        except OSError:
            return


def hash_files(sources: Mapping[str, Path], progress: TransferProgress | None = None) -> LocalFiles:
    """Read every file once, in pieces, and return sizes and hashes.

    Args:
        sources: The file for each path in the artifact.
        progress: Listener, or None.

    Raises:
        UploadError: A file cannot be read, or a name is one that no artifact may hold.
    """
    listener = progress or SilentTransferProgress()
    try:
        total_bytes = sum(source.stat().st_size for source in sources.values())
        listener.start("hashing", total_bytes)
        files = [_hash_file(path, source, listener) for path, source in sources.items()]
        return LocalFiles(manifest=ArtifactManifest.of(files), sources=dict(sources))
    except OSError as error:
        name = shown(error.filename or "a file")
        raise UploadError("file-unreadable", f"{name} cannot be read: {error.strerror or error}.") from error
    except ManifestError as error:
        raise UploadError(error.code, str(error), details=tuple(map(detail_of, error.details))) from error


def _hash_file(path: str, source: Path, listener: TransferProgress) -> ArtifactFile:
    with source.open("rb") as stream:
        digest = hash_stream(stream, sink=lambda chunk: listener.advance(len(chunk)))
    return ArtifactFile(path, digest.size_bytes, digest.sha256)


class Uploader:
    """Sends files to one server.

    Args:
        api: The server.
        journal: Where unfinished uploads are remembered; None for as long as this object lives.
        progress: Listener, or None.
    """

    def __init__(
        self,
        api: AssayApi,
        *,
        journal: UploadJournal | None = None,
        progress: TransferProgress | None = None,
    ) -> None:
        self._api = api
        self._journal = journal or MemoryJournal()
        self._progress = progress or SilentTransferProgress()

    def upload(self, kind: str, files: LocalFiles) -> str:
        """Store the files as one artifact and return its digest.

        Args:
            kind: "adapter", "dataset", "base_model" or "suite".
            files: What ``hash_files`` returned.

        Raises:
            UploadError: A file changed meanwhile, or the server stored something else.
            AssayApiError: The server refused (too large, not allowed, disk full, ...).
            ServerUnreachableError: The server was away for longer than the retries last.
        """
        key = self._journal_key(kind, files.manifest)
        upload = self._open_upload(key, kind, files.manifest)
        if upload.artifact is None:
            self._send_missing(upload, files)
            digest = self._commit(upload, files)
        else:
            self._progress.note("the server has all files already")
            digest = upload.artifact
        self._journal.forget(key)
        if digest != files.manifest.digest:
            raise UploadError(
                "digest-mismatch",
                f"The server stored the files as {digest}, but here their digest is {files.manifest.digest}.",
            )
        return digest

    def _journal_key(self, kind: str, manifest: ArtifactManifest) -> str:
        identity = f"{self._api.http.server_url}\n{kind}\n{manifest.digest}"
        return hashlib.sha256(identity.encode()).hexdigest()

    def _open_upload(self, key: str, kind: str, manifest: ArtifactManifest) -> Upload:
        upload_id = self._journal.find(key)
        if upload_id is not None:
            upload = self._find_open_upload(upload_id)
            if upload is not None:
                self._progress.note("going on with the upload that was begun before")
                return upload
        upload = self._api.declare_upload(kind, manifest)
        if upload.artifact is None:
            self._journal.remember(key, upload.id)
        return upload

    def _find_open_upload(self, upload_id: str) -> Upload | None:
        try:
            upload = self._api.get_upload(upload_id)
        except AssayApiError as error:
            # 403: the journal is from another token of the same server.
            if error.status in _UPLOAD_GONE_STATUSES or error.status == 403:
                return None
            raise
        return upload if upload.state == "open" else None

    def _send_missing(self, upload: Upload, files: LocalFiles) -> None:
        contents = files.by_sha256()
        # Two files with the same content are one blob; it is sent once.
        missing = {blob.sha256: blob for blob in upload.blobs if not blob.is_complete}
        missing_bytes = sum(contents[sha256][1] - blob.received_bytes for sha256, blob in missing.items())
        num_present = len(contents) - len(missing)
        if num_present:
            self._progress.note(f"the server has {num_present} of {len(contents)} files already")
        if missing:
            self._progress.start("uploading", missing_bytes)
        chunk_bytes = max(1, min(MAX_CHUNK_BYTES, upload.chunk_size_bytes))
        for sha256, blob in missing.items():
            source, size_bytes = contents[sha256]
            _BlobSender(self._api, upload.id, sha256, source, size_bytes, chunk_bytes, self._progress).send(
                blob.received_bytes
            )

    def _commit(self, upload: Upload, files: LocalFiles) -> str:
        try:
            return self._api.commit_upload(upload.id)
        except AssayApiError as error:
            if error.code != "upload-incomplete":
                raise
        # The server lost something (a crash before its disk was synced): send what it lacks now, and once
        # only.
        self._send_missing(self._api.get_upload(upload.id), files)
        return self._api.commit_upload(upload.id)


@dataclass(slots=True)
class _BlobSender:
    """Sends one file's content, chunk by chunk, from wherever the server stands."""

    api: AssayApi
    upload_id: str
    sha256: str
    source: Path
    size_bytes: int
    chunk_bytes: int
    progress: TransferProgress

    def send(self, received_bytes: int) -> None:
        num_stalls = num_hash_mismatches = 0
        offset_bytes = received_bytes
        with self.source.open("rb") as stream:
            while True:
                stream.seek(offset_bytes)
                chunk = stream.read(self.chunk_bytes)
                self._check_length(offset_bytes, len(chunk))
                try:
                    blob = self._put(chunk, offset_bytes)
                except AssayApiError as error:
                    if error.code != "blob-hash-mismatch":
                        raise
                    num_hash_mismatches += 1
                    self._check_content(error, num_hash_mismatches)
                    blob = UploadedBlob(sha256=self.sha256, received_bytes=0, is_complete=False)
                self.progress.advance(blob.received_bytes - offset_bytes)
                if blob.is_complete:
                    return
                num_stalls = num_stalls + 1 if blob.received_bytes <= offset_bytes else 0
                if num_stalls > _MAX_STALLS:
                    raise UploadError(
                        "upload-stalled",
                        f"{shown(self.source)}: the server stays at byte {blob.received_bytes:,} "
                        f"of {format_bytes(self.size_bytes)}.",
                    )
                offset_bytes = blob.received_bytes

    def _put(self, chunk: bytes, offset_bytes: int) -> UploadedBlob:
        try:
            return self.api.put_chunk(
                self.upload_id, self.sha256, chunk, offset_bytes=offset_bytes, size_bytes=self.size_bytes
            )
        except AssayApiError as error:
            if error.code == "upload-busy":
                # The server still works on a chunk whose connection broke here.
                self.api.http.retry_policy.sleep(_BUSY_PAUSE_SECONDS)
            elif error.code != "upload-offset-mismatch":
                raise
        # A chunk whose answer was lost has arrived after all, or the server lost some: its own count decides.
        return self._ask_state()

    def _ask_state(self) -> UploadedBlob:
        for blob in self.api.get_upload(self.upload_id).blobs:
            if blob.sha256 == self.sha256:
                return blob
        raise UploadError(
            "upload-lost", f"The server does not know {shown(self.source)} in this upload any more."
        )

    def _check_length(self, offset_bytes: int, num_read: int) -> None:
        if (num_read == 0 and self.size_bytes > 0) or offset_bytes + num_read > self.size_bytes:
            raise self._changed()

    def _check_content(self, error: AssayApiError, num_hash_mismatches: int) -> None:
        """Find out who is wrong: raise when the file here changed, or when it happens again and again."""
        with self.source.open("rb") as stream:
            if hash_stream(stream).sha256 != self.sha256:
                raise self._changed()
        if num_hash_mismatches >= _MAX_HASH_MISMATCHES:
            raise error
        self.progress.note("a file arrived damaged; sending it again")

    def _changed(self) -> UploadError:
        return UploadError(
            "file-changed",
            f"{shown(self.source)} changed while it was uploaded. Is a training still writing to it?",
        )
