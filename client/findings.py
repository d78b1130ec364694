"""Findings of the checks that client and server share, in the client's own form."""

from client.errors import ErrorDetail
from registry.artifacts.findings import Finding


def detail_of(finding: Finding) -> ErrorDetail:
    """Return a finding as one of an error's faults."""
    return ErrorDetail(
        code=finding.code,
        message=finding.message,
        where=finding.where,
        remedy=finding.remedy,
        severity=finding.severity.value,
    )
