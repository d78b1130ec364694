"""The errors of the artifact package: plain exceptions with a stable code and all single faults.

The web layer turns them into problem documents; nothing here knows about HTTP.
"""

from collections.abc import Iterable

from registry.artifacts.findings import Finding


class ArtifactError(Exception):
    """Base of this package's errors.

    Attributes:
        code: stable kebab-case name of the kind of fault.
        details: every single fault when there can be several; may be empty.
    """

    code = "artifact-error"

    def __init__(self, message: str, *, code: str | None = None, details: Iterable[Finding] = ()) -> None:
        """Take the message for a person, the code (the class's when None) and the single faults."""
        super().__init__(message)
        self.code = code or type(self).code
        self.details = tuple(details)


class DigestError(ArtifactError):
    """A text that should be a digest is none, or a value has no canonical JSON form."""

    code = "digest-invalid"


class ManifestError(ArtifactError):
    """A list of files is not a valid artifact; `details` names every fault."""

    code = "manifest-invalid"


class FolderError(ArtifactError):
    """A folder cannot be read or written as an artifact."""

    code = "folder-invalid"


class BaseModelError(ArtifactError):
    """A folder is not a base model that can be used; `details` names every fault."""

    code = "base-model-invalid"


class AdapterConfigError(ArtifactError):
    """adapter_config.json cannot be read as a JSON object."""

    code = "adapter-config-unreadable"


class SafetensorsError(ArtifactError):
    """A safetensors header is damaged or hostile; `code` says in which way."""

    code = "safetensors-invalid"


class BlobNotFoundError(ArtifactError):
    """The store has no blob of that sha256."""

    code = "blob-not-found"


class BlobHashMismatchError(ArtifactError):
    """The bytes do not have the sha256 or the size that was announced; nothing was stored."""

    code = "blob-hash-mismatch"


class StoreFullError(ArtifactError):
    """The file system has no room left (ENOSPC or EDQUOT); nothing half-written is visible."""

    code = "store-full"


class UploadOffsetError(ArtifactError):
    """A chunk does not start where the received bytes end.

    Attributes:
        received_bytes: the offset at which the next chunk must start.
    """

    code = "upload-offset-mismatch"

    def __init__(self, message: str, *, received_bytes: int) -> None:
        """Take the message and the offset that is expected instead."""
        super().__init__(message)
        self.received_bytes = received_bytes


class UploadChunkError(ArtifactError):
    """A chunk is shorter or longer than announced, or runs past the file's size; its bytes were dropped."""

    code = "upload-chunk-invalid"


class UploadBusyError(ArtifactError):
    """Another request is writing the same file of the same upload at this moment."""

    code = "upload-busy"


class UploadIncompleteError(ArtifactError):
    """An upload was to be finished before all of its bytes had arrived."""

    code = "upload-incomplete"
