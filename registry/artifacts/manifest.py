"""An artifact: a set of files, named by their content.

The digest of an artifact is the sha256 of the canonical JSON (`digests.canonical_json`) of the list of its
files, sorted by path (by code point), each file being the list ``[path, size_bytes, sha256]``. For example
one file ``a.txt`` of three bytes: ``[["a.txt",3,"ba78…15ad"]]``. The order in which files are given does not
matter; kinds and names of artifacts do not enter. Standard library only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.artifacts.digests import digest_json, is_sha256
from registry.artifacts.errors import ManifestError
from registry.artifacts.findings import Finding, shown
from registry.artifacts.paths import check_paths

MAX_FILES = 10_000


@dataclass(frozen=True, slots=True, order=True)
class ArtifactFile:
    """One file of an artifact.

    Attributes:
        path: relative posix path inside the artifact (rules in `paths`).
        size_bytes: length of the file.
        sha256: 64 lowercase hex digits.
    """

    path: str
    size_bytes: int
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Return the form used in the API: path, size_bytes, sha256."""
        return {"path": self.path, "size_bytes": self.size_bytes, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class ArtifactManifest:
    """The files of an artifact, sorted by path, and the digest that names it.

    Raises:
        ManifestError: no file, too many files, a bad path, size or hash; `details` lists every fault.
    """

    files: tuple[ArtifactFile, ...]
    digest: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the files, check them and compute the digest."""
        findings = _check_files(self.files)
        if findings:
            raise ManifestError(
                f"The list of files has {len(findings)} fault(s): {findings[0].message}", details=findings
            )
        ordered = tuple(sorted(self.files))
        object.__setattr__(self, "files", ordered)
        object.__setattr__(
            self, "digest", digest_json([[file.path, file.size_bytes, file.sha256] for file in ordered])
        )

    @property
    def size_bytes(self) -> int:
        """Sum of the files' sizes."""
        return sum(file.size_bytes for file in self.files)

    @property
    def num_files(self) -> int:
        """Number of files."""
        return len(self.files)

    def file(self, path: str) -> ArtifactFile | None:
        """Return the file of that path, None when the artifact has none."""
        return next((file for file in self.files if file.path == path), None)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the files as JSON objects, sorted by path."""
        return [file.to_json() for file in self.files]

    @classmethod
    def from_json(cls, value: Any) -> "ArtifactManifest":
        """Build a manifest from what `to_json` gives (or a client sends).

        Raises:
            ManifestError: the value is no list of {"path", "size_bytes", "sha256"} objects, or as for the
            class.
        """
        if not isinstance(value, list):
            raise ManifestError("The files must be a list of objects with path, size_bytes and sha256.")
        findings = [finding for index, item in enumerate(value) for finding in _check_item(index, item)]
        if findings:
            raise ManifestError(
                f"The list of files has {len(findings)} fault(s): {findings[0].message}", details=findings
            )
        return cls.of(ArtifactFile(item["path"], item["size_bytes"], item["sha256"]) for item in value)

    @classmethod
    def of(cls, files: Iterable[ArtifactFile]) -> "ArtifactManifest":
        """Build a manifest from files in any order."""
        return cls(tuple(files))


def _check_item(index: int, item: Any) -> list[Finding]:
    where = f"files[{index}]"
    if not isinstance(item, Mapping):
        return [Finding.error("manifest-entry-invalid", "The entry is not an object.", where=where)]
    findings = []
    for name, kind in (("path", str), ("size_bytes", int), ("sha256", str)):
        if not isinstance(item.get(name), kind) or isinstance(item.get(name), bool):
            findings.append(
                Finding.error(
                    "manifest-entry-invalid", f"{name} must be of type {kind.__name__}.", where=where
                )
            )
    findings.extend(
        Finding.error("manifest-entry-invalid", f"Unknown field {shown(name)!r}.", where=where)
        for name in sorted(map(str, item.keys() - {"path", "size_bytes", "sha256"}))
    )
    return findings


def _check_files(files: tuple[ArtifactFile, ...]) -> list[Finding]:
    if not files:
        return [Finding.error("artifact-empty", "An artifact needs at least one file.")]
    if len(files) > MAX_FILES:
        return [
            Finding.error("artifact-too-many-files", f"{len(files)} files; at most {MAX_FILES} are allowed.")
        ]
    findings = check_paths(file.path for file in files)
    for file in files:
        if file.size_bytes < 0:
            message = f"size_bytes is {file.size_bytes}; it cannot be negative."
            findings.append(Finding.error("size-invalid", message, where=shown(file.path)))
        if not is_sha256(file.sha256):
            message = f"sha256 {shown(file.sha256)!r} is not 64 lowercase hexadecimal digits."
            findings.append(Finding.error("digest-invalid", message, where=shown(file.path)))
    return findings
