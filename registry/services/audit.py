"""The record of every change of state: written in the transaction of the change, never altered."""

from collections.abc import Mapping
from typing import Any

from django.db import models

from registry.models import AuditEvent
from registry.services.actors import Actor


def record_audit(
    *,
    actor: Actor,
    action: str,
    target: models.Model,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
) -> AuditEvent:
    """Writes one audit row; call it inside the transaction that makes the change.

    Args:
        actor: Who did it.
        action: What was done, as "object.verb", e.g. "channel.promote".
        target: The row that was changed; it has been saved.
        before: JSON values of what changed, as they were; None for a creation.
        after: The same, as they are now; None for a deletion.
        reason: Why, in the actor's words; empty when none was asked for.
    """
    return AuditEvent.objects.create(
        actor=actor.name,
        action=action,
        object_type=target._meta.label_lower,
        object_id=str(target.pk),
        before=None if before is None else dict(before),
        after=None if after is None else dict(after),
        reason=reason,
    )
