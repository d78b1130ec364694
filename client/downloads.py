"""Downloads: pull an artifact's files into a folder that appears whole or not at all.

Files go into a hidden folder beside the target, which keeps what arrived for the next try; each is checked
by its sha256; then the folder is renamed. A target that holds something else is never touched.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO
from urllib.parse import quote

from client.api import AssayApi
from client.errors import AssayApiError, DownloadError, ServerUnreachableError
from client.progress import SilentTransferProgress, TransferProgress, format_bytes
from registry.artifacts.digests import HASH_CHUNK_BYTES
from registry.artifacts.findings import shown
from registry.artifacts.manifest import ArtifactFile, ArtifactManifest

try:
    import fcntl
except (
    ModuleNotFoundError
):  # Windows has no flock; there, two pulls into one folder at once are up to the user.
    fcntl = None  # type: ignore[assignment]

RECORD_NAME = "assay-manifest.json"
_MAX_PARALLEL_FILES = 4
_MAX_HASH_MISMATCHES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """Where the files are. ``is_unchanged``: the target held exactly these files before, and nothing was
    fetched.
    """

    target: Path
    is_unchanged: bool


class Downloader:
    """Fetches artifacts from one server.

    Args:
        api: The server.
        progress: Listener, or None.
    """

    def __init__(self, api: AssayApi, *, progress: TransferProgress | None = None) -> None:
        self._api = api
        self._progress = progress or SilentTransferProgress()

    def pull(
        self, manifest: ArtifactManifest, target: Path, *, record: Mapping[str, object] | None = None
    ) -> PullResult:
        """Bring the files of an artifact into ``target``.

        Args:
            manifest: The files; their paths are checked by its class.
            target: Folder to make. It may exist if it is empty or holds exactly these files.
            record: JSON object that is kept beside the files as ``assay-manifest.json`` (what was pulled,
                from where), or None. It is not part of the artifact.

        Raises:
            DownloadError: The target holds something else, a file stays damaged, or the disk is full.
            AssayApiError: The server refused.
            ServerUnreachableError: The server was away for longer than the retries last.
        """
        # resolve() follows a link at the end, so that a pull into a linked folder fills the folder, not the
        # link.
        target = target.resolve()
        try:
            if self._is_present(manifest, target):
                return PullResult(target=target, is_unchanged=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            staging = target.parent / f".{target.name}.assay-{manifest.digest[:12]}"
            with _exclusive(staging, self._progress):
                # Another pull may have finished while this one waited for the lock.
                if self._is_present(manifest, target):
                    return PullResult(target=target, is_unchanged=True)
                self._fill(manifest, staging)
                _write_record(staging, manifest, record)
                _move_into_place(staging, target)
        except OSError as error:
            raise _disk_error(error, target) from error
        return PullResult(target=target, is_unchanged=False)

    def _is_present(self, manifest: ArtifactManifest, target: Path) -> bool:
        """Whether the target holds exactly these files; raises when it holds anything else."""
        if not target.exists():
            return False
        if not target.is_dir():
            raise DownloadError("target-in-use", f"{shown(target)} exists and is not a folder.")
        found = {path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir()}
        if not found:
            return False
        expected = {file.path for file in manifest.files}
        if found in (expected, expected | {RECORD_NAME}) and self._has_contents(manifest, target):
            return True
        raise DownloadError(
            "target-in-use",
            f"{shown(target)} holds other files, and nothing is overwritten. Give another folder, for "
            f"example {shown(target.name)}-{manifest.digest[:12]}, and move your link or setting to it.",
        )

    def _has_contents(self, manifest: ArtifactManifest, target: Path) -> bool:
        if any((target / file.path).stat().st_size != file.size_bytes for file in manifest.files):
            return False
        self._progress.start("comparing", manifest.size_bytes)
        return all(_hash_path(target / file.path, self._progress) == file.sha256 for file in manifest.files)

    def _fill(self, manifest: ArtifactManifest, staging: Path) -> None:
        staging.mkdir(exist_ok=True)
        _require_space(manifest, staging)
        self._progress.start("downloading", manifest.size_bytes)
        stop = Event()
        with ThreadPoolExecutor(max_workers=_MAX_PARALLEL_FILES, thread_name_prefix="assay-pull") as pool:
            futures = [
                pool.submit(
                    _FileFetch(
                        self._api, manifest.digest, file, staging / file.path, self._progress, stop
                    ).run
                )
                for file in manifest.files
            ]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            finally:
                # On an error or Ctrl-C the others end at their next piece; what they have is kept for the
                # next try.
                stop.set()
                pool.shutdown(cancel_futures=True)


@dataclass(slots=True)
class _FileFetch:
    """Fetches one file, going on from the bytes that are there."""

    api: AssayApi
    artifact: str
    file: ArtifactFile
    path: Path
    progress: TransferProgress
    stop: Event

    def run(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        num_mismatches = 0
        attempt = 1
        with self.path.open("a+b") as stream:
            hasher = self._hash_present(stream)
            while not self.stop.is_set():
                size_before = stream.tell()
                try:
                    hasher = self._receive(stream, hasher)
                except (ServerUnreachableError, AssayApiError) as error:
                    attempt = 1 if stream.tell() > size_before else attempt + 1
                    self._pause_or_raise(error, attempt)
                    continue
                if self.stop.is_set() or hasher.hexdigest() == self.file.sha256:
                    return
                num_mismatches += 1
                if num_mismatches >= _MAX_HASH_MISMATCHES:
                    raise DownloadError(
                        "hash-mismatch",
                        f"{shown(self.file.path)} arrives with other bytes than its sha256 says.",
                    )
                self.progress.note(f"{shown(self.file.path)} arrived damaged; fetching it again")
                hasher = self._start_over(stream)

    def _hash_present(self, stream: IO[bytes]) -> "hashlib._Hash":
        """Hash what an earlier try left; what cannot be a beginning of the file is dropped."""
        hasher = hashlib.sha256()
        if stream.seek(0, os.SEEK_END) > self.file.size_bytes:
            stream.truncate(0)
        stream.seek(0)
        while chunk := stream.read(HASH_CHUNK_BYTES):
            hasher.update(chunk)
            self.progress.advance(len(chunk))
        return hasher

    def _start_over(self, stream: IO[bytes]) -> "hashlib._Hash":
        self.progress.advance(-stream.tell())
        stream.seek(0)
        stream.truncate(0)
        return hashlib.sha256()

    def _receive(self, stream: IO[bytes], hasher: "hashlib._Hash") -> "hashlib._Hash":
        """Read the rest of the file from the server; return the hasher of all bytes in ``stream``."""
        offset_bytes = stream.tell()
        if offset_bytes == self.file.size_bytes:
            return hasher
        headers = {"Accept-Encoding": "identity"}
        if offset_bytes:
            headers["Range"] = f"bytes={offset_bytes}-"
        path = f"artifacts/{self.artifact}/files/{quote(self.file.path)}"
        with self.api.http.stream(path, headers=headers) as response:
            if offset_bytes and not _continues(response.headers.get("Content-Range"), offset_bytes):
                # A server or proxy that ignores Range sends the file from its beginning.
                hasher = self._start_over(stream)
            # Pieces as they come: a chunk size would hold back, and lose, what came before a break.
            for chunk in response.iter_raw():
                if self.stop.is_set():
                    return hasher
                if stream.tell() + len(chunk) > self.file.size_bytes:
                    raise DownloadError(
                        "size-mismatch",
                        f"{shown(self.file.path)} is longer than {self.file.size_bytes:,} bytes.",
                    )
                stream.write(chunk)
                hasher.update(chunk)
                self.progress.advance(len(chunk))
        if stream.tell() < self.file.size_bytes:
            raise ServerUnreachableError(
                "connection-ended", f"The connection ended in the middle of {shown(self.file.path)}."
            )
        stream.flush()
        return hasher

    def _pause_or_raise(self, error: ServerUnreachableError | AssayApiError, attempt: int) -> None:
        policy = self.api.http.retry_policy
        is_transient = error.is_transient if isinstance(error, AssayApiError) else True
        retry_after_seconds = error.retry_after_seconds if isinstance(error, AssayApiError) else None
        pause_seconds = policy.pause_seconds(attempt, retry_after_seconds) if is_transient else None
        if pause_seconds is None:
            raise error
        self.progress.note(f"{error.message} Going on in {pause_seconds:.1f} s.")
        policy.sleep(pause_seconds)


def _continues(content_range: str | None, offset_bytes: int) -> bool:
    return content_range is not None and content_range.strip().startswith(f"bytes {offset_bytes}-")


def _hash_path(path: Path, progress: TransferProgress) -> str:
    hasher = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(HASH_CHUNK_BYTES):
            hasher.update(chunk)
            progress.advance(len(chunk))
    return hasher.hexdigest()


@contextmanager
def _exclusive(staging: Path, progress: TransferProgress) -> Iterator[None]:
    """Let one process at a time fill a staging folder."""
    lock_path = staging.with_name(f"{staging.name}.lock")
    with lock_path.open("w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                progress.note("another process pulls the same files into the same place; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        # Removed only after success: a waiting process still holds this file open and finds the target in
        # place.
        lock_path.unlink(missing_ok=True)


def _require_space(manifest: ArtifactManifest, staging: Path) -> None:
    present_bytes = sum(path.stat().st_size for path in staging.rglob("*") if path.is_file())
    missing_bytes = max(0, manifest.size_bytes - present_bytes)
    free_bytes = shutil.disk_usage(staging).free
    if missing_bytes > free_bytes:
        raise DownloadError(
            "disk-full",
            f"{format_bytes(missing_bytes)} are to come, but {shown(staging.parent)} has "
            f"{format_bytes(free_bytes)} free.",
        )


def _write_record(staging: Path, manifest: ArtifactManifest, record: Mapping[str, object] | None) -> None:
    if record is None or manifest.file(RECORD_NAME) is not None:
        return
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    (staging / RECORD_NAME).write_text(text, encoding="utf-8")


def _move_into_place(staging: Path, target: Path) -> None:
    if target.is_dir():
        # An empty tree; rmdir refuses anything that came in meanwhile.
        for folder in sorted(target.rglob("*"), reverse=True):
            folder.rmdir()
        target.rmdir()
    staging.rename(target)


def _disk_error(error: OSError, target: Path) -> DownloadError:
    reason = error.strerror or str(error)
    return DownloadError("target-not-writable", f"{shown(target)} cannot be written: {reason}.")
