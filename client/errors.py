"""Errors of the client, split by who can do something about them.

Every error has a stable kebab-case ``code``, a message for people, and the separate faults when there are
several.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDetail:
    """One fault of several, as the server (or a local check) reports it.

    Attributes:
        code: Stable kebab-case code.
        message: What is wrong, for people.
        where: The place of the fault ("data.jsonl line 17"), or None when it has none.
        remedy: What to do about it, or None when the message says it already.
        severity: "error", "warning" or "info".
    """

    code: str
    message: str
    where: str | None = None
    remedy: str | None = None
    severity: str = "error"


class AssayError(Exception):
    """Root of the client's errors.

    Attributes:
        code: Stable kebab-case code.
        message: What went wrong, where, and what to do.
        details: The separate faults; empty when there is just the one in ``message``.
    """

    def __init__(self, code: str, message: str, *, details: tuple[ErrorDetail, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class UsageError(AssayError):
    """The command was given something that cannot work; nothing was sent to the server."""


class CredentialsError(AssayError):
    """No server or token is known, or the login file cannot be read or written."""


class ServerUnreachableError(AssayError):
    """No answer from the server: refused, dropped, timed out or unknown host. May pass by itself."""


class UnexpectedAnswerError(AssayError):
    """The server answered something that the REST contract does not provide for."""


class UploadError(AssayError):
    """Files could not be stored: changed while they were sent, or not taken by the server."""


class DownloadError(AssayError):
    """Files could not be written: wrong hash, no space, or the target holds something else."""


class WaitTimeoutError(AssayError):
    """What was waited for did not end within the given time; it goes on at the server."""


class AssayApiError(AssayError):
    """The server refused a request with a problem document (RFC 9457).

    Attributes:
        status: HTTP status, 400-599.
        title: The problem's general title.
        detail: What is wrong with this request; may be empty.
        extra: The document's further members, such as ``received_bytes``.
        retry_after_seconds: How long the server asks to wait, or None.
    """

    def __init__(
        self,
        *,
        status: int,
        code: str,
        title: str,
        detail: str,
        errors: tuple[ErrorDetail, ...] = (),
        extra: Mapping[str, object] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(code, detail or title, details=errors)
        self.status = status
        self.title = title
        self.detail = detail
        self.errors = errors
        self.extra: Mapping[str, object] = extra or {}
        self.retry_after_seconds = retry_after_seconds

    @property
    def is_transient(self) -> bool:
        """Whether the same request may well succeed later.

        That is so for 429, 502, 503 and 504, and for the repeat of a POST whose first try is still being
        answered.
        """
        return self.status in TRANSIENT_STATUSES or self.code == "request-in-flight"


TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
