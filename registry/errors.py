"""The errors that services and views of all apps raise.

One root builds its own message; every subclass stands for one HTTP status. The wording of a code is kept in
the class that owns it (`wordings`), so that a `raise` names only the code and the facts. The API turns an
error into a problem document (RFC 9457); the facts become members of that document. Nothing here knows about
requests.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from registry.artifacts.errors import ArtifactError
from registry.artifacts.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of several faults in what a client sent.

    `where` names the place (a JSON pointer into the body, or a file and line), None when the whole input is
    meant; `remedy` says what to do, None when the message says it already.
    """

    code: str
    message: str
    where: str | None = None
    remedy: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """The member of a problem document's `errors`."""
        return {"code": self.code, "message": self.message, "where": self.where, "remedy": self.remedy}

    @classmethod
    def from_finding(cls, finding: Finding) -> "Fault":
        """A fault that a check of the artifact package found."""
        return cls(code=finding.code, message=finding.message, where=finding.where, remedy=finding.remedy)


class AssayError(Exception):
    """Root of the server's own errors.

    Attributes:
        code: Stable kebab-case name of the kind of error.
        detail: What is wrong, where, and what to do, for people.
        status: HTTP status.
        fields: The facts of this case; they become members of the problem document, so they must be JSON
            values.
        faults: The single faults where there can be several.
    """

    default_status: ClassVar[int] = 500
    wordings: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        status: int | None = None,
        faults: Iterable[Fault] = (),
        **fields: Any,
    ) -> None:
        """Takes the code, the facts, and a detail where the code has no wording (never formatted)."""
        self.code = code
        self.status = status or self.default_status
        self.fields = fields
        self.faults = tuple(faults)
        self.detail = detail or self._worded(fields)
        super().__init__(self.detail)

    def _worded(self, fields: Mapping[str, object]) -> str:
        for owner in type(self).__mro__:
            wording = vars(owner).get("wordings", {}).get(self.code)
            if wording is not None:
                return str(wording).format(**fields)
        return self.title + "."

    @property
    def title(self) -> str:
        """The code as a sentence: "channel-changed" is "Channel changed"."""
        return self.code.replace("-", " ").capitalize()


class NotFoundError(AssayError):
    """There is no such thing, or the asker may not know of it."""

    default_status = 404
    wordings = {
        "artifact-not-found": "There is no artifact {digest}.",
        "file-not-found": "Artifact {digest} has no file {path!r}.",
        "base-model-not-found": "There is no base model {name!r}.{near}",
        "dataset-not-found": "There is no dataset {name!r}.{near}",
        "dataset-version-not-found": "There is no dataset version {reference!r}.{near}",
        "adapter-not-found": "There is no adapter {name!r}.{near}",
        "version-not-found": "There is no version {reference!r}.",
        "channel-not-found": "There is no channel {name!r}.{near}",
        "channel-empty": "Nothing has been promoted to channel {name!r} yet.",
        "promotion-not-found": "Channel {name!r} has no promotion {promotion_id}.",
        "upload-not-found": "There is no upload {upload_id}.",
        "blob-not-declared": "Upload {upload_id} declares no file with sha256 {sha256}.",
        "job-not-found": "There is no job {job_id}.",
    }


class ConflictError(AssayError):
    """What is asked does not fit the present state."""

    default_status = 409
    wordings = {
        "name-taken": "The name {name!r} is taken.",
        "upload-not-open": "The upload is {state}; make a new one.",
        "upload-incomplete": "{num_missing} of {num_files} files are not complete; send them.",
        "upload-offset-mismatch": "The next chunk must begin at byte {received_bytes}.",
        "upload-busy": "Another request is writing the same file at this moment; try again.",
        "channel-name-taken": "There is a channel {name!r} already, with form {form!r}.",
        "base-model-name-taken": "Base model {name!r} has other bytes (artifact {artifact}).",
        "dataset-role-differs": "Dataset {name!r} has role {role!r}; another role needs another dataset.",
        "version-not-passed": "Version {reference} has verdict {verdict!r}; it must be passed.",
        "nothing-to-roll-back": "Channel {name!r} has no earlier promotion to go back to.",
        "request-in-flight": "A request with the same Idempotency-Key is being answered; try again shortly.",
    }


class ValidationFailed(AssayError):
    """What was sent is at fault; `faults` holds every reason at once."""

    default_status = 422

    def __init__(self, code: str, detail: str = "", *, faults: Iterable[Fault] = (), **fields: Any) -> None:
        """Without a detail the first fault is told, with the number of the others."""
        listed = tuple(faults)
        if not detail and listed:
            more = f" ({len(listed) - 1} more)" if len(listed) > 1 else ""
            place = f"{listed[0].where}: " if listed[0].where else ""
            detail = f"{place}{listed[0].message}{more}"
        super().__init__(code, detail, faults=listed, **fields)


class ScopeError(AssayError):
    """The actor may not do this."""

    default_status = 403
    wordings = {
        "scope-missing": "This needs the scope {required!r}; the token or user has: {granted}.",
        "adapter-out-of-scope": "The token is limited to other adapters than {adapter!r}.",
    }


class PreconditionFailed(AssayError):
    """The thing was changed since the client looked at it."""

    default_status = 412
    wordings = {
        "channel-changed": "Channel {name!r} was changed meanwhile (its ETag is {etag}); look again.",
    }


class PreconditionRequired(AssayError):
    """The request must say which state it wants to change."""

    default_status = 428
    wordings = {
        "precondition-required": "Send If-Match with the ETag of the thing that is to be changed.",
    }


class PayloadTooLarge(AssayError):
    """The request or the declared upload is larger than allowed."""

    default_status = 413
    wordings = {
        "chunk-too-large": "A chunk may have {limit_bytes} bytes at most; send the file in several chunks.",
        "body-too-large": "The body may have {limit_bytes} bytes at most.",
    }


class StoreFull(AssayError):
    """The store has no room left; what had been acknowledged is kept."""

    default_status = 507
    wordings = {
        "store-full": "The server's store is full; what was acknowledged is kept. Try again later.",
    }


class IllegalTransition(ConflictError):
    """The change of state is not in the table of allowed transitions, or another change came first."""

    wordings = {
        "illegal-transition": "{object_name} is {from_state!r}; it cannot become {to_state!r}.",
        "state-changed": "{object_name} is no longer {from_state!r}; look again.",
    }


def validation_failed(error: ArtifactError, *, code: str | None = None) -> ValidationFailed:
    """The error for what the artifact package found in a client's input, with every finding as a fault."""
    faults = [Fault.from_finding(finding) for finding in error.details]
    return ValidationFailed(code or error.code, str(error) if not faults else "", faults=faults)
