"""Reads of the audit log."""

from django.db.models import QuerySet

from registry.models import AuditEvent


def list_audit_events(**conditions: str | None) -> QuerySet[AuditEvent, AuditEvent]:
    """Audit rows; conditions are equalities on columns, None leaves one out."""
    return AuditEvent.objects.filter(**{key: value for key, value in conditions.items() if value is not None})
