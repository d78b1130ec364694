"""Overrides: people who set a decision aside. One asks with a reason, another confirms; the decision itself
stays.
"""

from django.db import transaction
from django.utils import timezone

from evaluation.choices import Verdict
from evaluation.errors import EvaluationConflict, PersonNeeded
from evaluation.models import Decision, Override
from evaluation.selectors.decisions import find_override, get_override
from registry.choices import TokenScope
from registry.errors import Fault, ValidationFailed
from registry.services.actors import Actor
from registry.services.audit import record_audit

MIN_REASON_CHARACTERS = 10
"""A reason that explains nothing is no reason."""


def require_reason(reason: str, *, minimum: int = 1, where: str = "/reason") -> str:
    """The reason without blanks around it.

    Raises:
        ValidationFailed: it has fewer than `minimum` characters (code `reason-missing`).
    """
    text = reason.strip()
    if len(text) < minimum:
        message = f"Say why, in at least {minimum} characters." if minimum > 1 else "Say why."
        raise ValidationFailed(
            "reason-missing", faults=[Fault(code="reason-missing", message=message, where=where)]
        )
    return text


def request_override(*, decision: Decision, reason: str, actor: Actor) -> Override:
    """Asks that a decision be set aside; the request of the same person that is still open is returned as it
    is.

    Raises:
        ScopeError: the actor may not promote this adapter.
        PersonNeeded: there is no person behind the actor.
        ValidationFailed: the reason is missing or too short.
        EvaluationConflict: the decision is `passed`.
    """
    actor.require(TokenScope.PROMOTE, _adapter_name(decision))
    if actor.user is None:
        raise PersonNeeded("person-needed")
    text = require_reason(reason, minimum=MIN_REASON_CHARACTERS)
    if decision.verdict == Verdict.PASSED:
        raise EvaluationConflict("override-not-needed")
    with transaction.atomic():
        Decision.objects.select_for_update().get(pk=decision.pk)
        existing = find_override(decision)
        if existing is not None:
            return existing
        override = Override.objects.create(decision=decision, reason=text, created_by=actor.user)
        record_audit(
            actor=actor,
            action="override.request",
            target=override,
            after={"decision": str(decision.pk), "verdict": decision.verdict},
            reason=text,
        )
    return override


def confirm_override(*, override: Override, actor: Actor) -> Override:
    """Confirms, as the second person, that a decision may be set aside.

    Raises:
        ScopeError: the actor may not promote this adapter.
        PersonNeeded: there is no person behind the actor.
        EvaluationConflict: the actor asked for it, or it was confirmed before.
    """
    actor.require(TokenScope.PROMOTE, _adapter_name(override.decision))
    user = actor.user
    if user is None:
        raise PersonNeeded("person-needed")
    # An override whose author was deleted can no longer be shown to have had two people behind it.
    if override.created_by_id is None or override.created_by_id == user.pk:
        raise EvaluationConflict("second-person-needed", name=str(override.created_by or "A deleted user"))
    with transaction.atomic():
        changed = Override.objects.filter(pk=override.pk, confirmed_at__isnull=True).update(
            confirmed_by=user, confirmed_at=timezone.now()
        )
        if not changed:
            fresh = get_override(override.pk)
            raise EvaluationConflict("override-confirmed", confirmed_by=str(fresh.confirmed_by))
        fresh = get_override(override.pk)
        record_audit(
            actor=actor,
            action="override.confirm",
            target=fresh,
            before={"confirmed_by": None},
            after={"confirmed_by": user.get_username()},
            reason=fresh.reason,
        )
    return fresh


def _adapter_name(decision: Decision) -> str | None:
    version = decision.run.version
    return None if version is None else version.adapter.name
