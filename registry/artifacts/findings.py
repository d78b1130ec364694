"""What a check found, as values: severity, stable code, message, place and remedy.

Used by the checks of adapters, base models and folders, and printed by the client. Standard library only,
because the client installs nothing else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

_MAX_SHOWN_CHARS = 120


class Severity(StrEnum):
    """How much a finding weighs: an error refuses the input, a warning needs a look, an info explains."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check has to say.

    Attributes:
        code: stable kebab-case name; callers may branch on it.
        severity: see `Severity`.
        message: what is the matter, for a person.
        where: the file, field or tensor meant; None when the whole input is meant.
        remedy: what the user can do; None when nothing is needed.
    """

    code: str
    severity: Severity
    message: str
    where: str | None = None
    remedy: str | None = None

    @classmethod
    def error(
        cls, code: str, message: str, *, where: str | None = None, remedy: str | None = None
    ) -> "Finding":
        """Make a finding that refuses the input."""
        return cls(code=code, severity=Severity.ERROR, message=message, where=where, remedy=remedy)

    @classmethod
    def warning(
        cls, code: str, message: str, *, where: str | None = None, remedy: str | None = None
    ) -> "Finding":
        """Make a finding that a person should look at; the input is accepted."""
        return cls(code=code, severity=Severity.WARNING, message=message, where=where, remedy=remedy)

    @classmethod
    def info(
        cls, code: str, message: str, *, where: str | None = None, remedy: str | None = None
    ) -> "Finding":
        """Make a finding that only explains."""
        return cls(code=code, severity=Severity.INFO, message=message, where=where, remedy=remedy)

    def to_json(self) -> dict[str, str | None]:
        """Return the form used in result.json and in the API."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "where": self.where,
            "remedy": self.remedy,
        }


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return whether any of the findings refuses the input."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def shown(text: object) -> str:
    """Return untrusted text (a file, tensor or field name, a value) fit for a message or a log.

    Control and direction characters and lone surrogates are escaped, long texts are cut: an attacker writes
    these names.
    """
    escaped = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))
    return escaped if len(escaped) <= _MAX_SHOWN_CHARS else escaped[: _MAX_SHOWN_CHARS - 1] + "…"


def shown_list(texts: Iterable[object], *, limit: int = 5) -> str:
    """Return the first `limit` texts, each passed through `shown`, and how many more there are."""
    items = list(texts)
    head = ", ".join(shown(item) for item in items[:limit])
    return head if len(items) <= limit else f"{head} and {len(items) - limit} more"
