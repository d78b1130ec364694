"""What becomes of an incident (MISSION T6): steps are noted, facts are mended, people close it and answer.

Every change is a compare-and-set on the incident's revision, with a line in its log and in the audit log.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from registry.choices import TokenScope
from registry.errors import IllegalTransition
from registry.services.actors import Actor
from registry.services.audit import record_audit
from training.choices import INCIDENT_TRANSITIONS, CheckAnswer, IncidentEntryKind, IncidentState
from training.errors import ReviewerNeeded, TrainingConflict, TrainingInvalid
from training.models import Incident, IncidentEntry
from training.selectors.incidents import current_fields, find_recurrence, get_incident
from training.services.incident_requests import (
    IncidentRequest,
    list_request_faults,
    list_text_faults,
)
from training.services.incident_rows import lock_register, log, take_revision
from training.services.incidents import MAY_NOTE


def add_step(*, incident: Incident, text: str, actor: Actor) -> IncidentEntry:
    """Notes a step that was taken; also after the end, for what is learnt later.

    Raises:
        ScopeError: the actor may neither submit nor review.
        TrainingInvalid: an unusable text (code `incident-invalid`).
    """
    actor.require_any(MAY_NOTE)
    _require_texts({"text": text})
    with transaction.atomic():
        entry = log(incident, actor, IncidentEntryKind.STEP, text)
        record_audit(actor=actor, action="incident.note", target=incident, after={"entry": entry.pk})
    return entry


def edit_incident(
    *, incident: Incident, changes: Mapping[str, Any], expected_revision: int, actor: Actor
) -> Incident:
    """Changes what is known of an incident, also after its end.

    Args:
        incident: Any.
        changes: Some of the keys of `current_fields`.
        expected_revision: Of the incident as the person saw it.
        actor: With the scope `submit` or `review`.

    Raises:
        ScopeError: the actor may neither submit nor review.
        TrainingInvalid: with every fault at once (code `incident-invalid`).
        IncidentChanged: the incident has another revision by now.
    """
    actor.require_any(MAY_NOTE)
    before = dict(current_fields(incident))
    changed = {key: value for key, value in changes.items() if before[key] != value}
    request = IncidentRequest(**{**before, **changed})
    if faults := list_request_faults(request):
        raise TrainingInvalid("incident-invalid", faults=faults)
    if not changed:
        return incident
    with transaction.atomic():
        columns = {"symptom_id" if key == "symptom" else key: value for key, value in changed.items()}
        if "symptom" in changed:
            lock_register()
            columns["asks_for_check"] = bool(changed["symptom"]) and _recurs(incident, changed["symptom"])
        take_revision(incident, expected_revision, **columns)
        log(incident, actor, IncidentEntryKind.EDIT, f"Changed: {', '.join(changed)}.")
        old = {key: before[key] for key in changed}
        record_audit(actor=actor, action="incident.edit", target=incident, before=old, after=changed)
    return get_incident(incident.number)


def begin_investigation(*, incident: Incident, expected_revision: int, actor: Actor) -> Incident:
    """Says that somebody looks into it.

    Raises:
        ScopeError: the actor may neither submit nor review.
        IncidentChanged: the incident has another revision by now.
        IllegalTransition: it is not open.
    """
    actor.require_any(MAY_NOTE)
    return _change_state(incident, IncidentState.BEING_INVESTIGATED, expected_revision, actor)


def resolve_incident(
    *, incident: Incident, cause: str, fix: str, expected_revision: int, actor: Actor
) -> Incident:
    """Closes an incident whose cause is known and mended.

    Args:
        incident: Not closed yet.
        cause: What it was; never empty.
        fix: What was done about it; never empty.
        expected_revision: Of the incident as the person saw it.
        actor: A person with the scope `review`.

    Raises:
        ScopeError: the actor may not review.
        ReviewerNeeded: there is no person behind the actor.
        TrainingInvalid: a text is missing or unusable (code `incident-invalid`; every fault at once).
        IncidentChanged: the incident has another revision by now.
        IllegalTransition: it is closed already.
    """
    _require_person(actor)
    _require_texts({"cause": cause, "fix": fix})
    return _change_state(
        incident,
        IncidentState.RESOLVED,
        expected_revision,
        actor,
        closed_at=timezone.now(),
        cause=cause,
        fix=fix,
    )


def dismiss_incident(*, incident: Incident, reason: str, expected_revision: int, actor: Actor) -> Incident:
    """Closes what turned out to be no incident; it does not count as an occurrence.

    Raises:
        ScopeError, ReviewerNeeded, TrainingInvalid, IncidentChanged, IllegalTransition: as
            `resolve_incident`.
    """
    _require_person(actor)
    _require_texts({"reason": reason})
    return _change_state(
        incident, IncidentState.DISMISSED, expected_revision, actor, reason=reason, closed_at=timezone.now()
    )


def answer_check(
    *, incident: Incident, answer: str, text: str, expected_revision: int, actor: Actor
) -> Incident:
    """Answers the question for a check, before or after the end of the incident; a later answer takes the
    place of an earlier one, and the log keeps both.

    Args:
        incident: One that asks for a check.
        answer: A `CheckAnswer`.
        text: The check (its code, or an address), or the reason why there is none; never empty.
        expected_revision: Of the incident as the person saw it.
        actor: A person with the scope `review`.

    Raises:
        ScopeError: the actor may not review.
        ReviewerNeeded: there is no person behind the actor.
        TrainingInvalid: an unknown answer, or a missing or unusable text (code `incident-invalid`).
        TrainingConflict: the incident asks for nothing.
        IncidentChanged: the incident has another revision by now.
    """
    _require_person(actor)
    _require_texts({"text": text}, answer=answer)
    if not incident.asks_for_check:
        raise TrainingConflict("check-not-asked", number=incident.number)
    before = {"answer": incident.check_answer, "text": incident.check_text}
    with transaction.atomic():
        take_revision(
            incident,
            expected_revision,
            check_answer=answer,
            check_text=text,
            check_by=actor.user,
            check_at=timezone.now(),
        )
        log(incident, actor, IncidentEntryKind.CHECK, f"{CheckAnswer(answer).label}: {text}")
        after = {"answer": answer, "text": text}
        record_audit(actor=actor, action="incident.check", target=incident, before=before, after=after)
    return get_incident(incident.number)


def _recurs(incident: Incident, symptom: str) -> bool:
    return find_recurrence(symptom, at=incident.opened_at, before=incident.number).asks_for_check


def _require_person(actor: Actor) -> None:
    actor.require(TokenScope.REVIEW)
    if actor.user is None:
        raise ReviewerNeeded("incident-person-needed")


def _require_texts(texts: Mapping[str, str], *, answer: str | None = None) -> None:
    if faults := list_text_faults(texts, answer=answer):
        raise TrainingInvalid("incident-invalid", faults=faults)


def _change_state(
    incident: Incident,
    to_state: IncidentState,
    expected_revision: int,
    actor: Actor,
    *,
    reason: str = "",
    **columns: Any,
) -> Incident:
    from_state = incident.state
    if to_state not in INCIDENT_TRANSITIONS[from_state]:
        raise IllegalTransition(
            "illegal-transition",
            object_name=f"Incident {incident.number}",
            from_state=str(from_state),
            to_state=str(to_state),
        )
    with transaction.atomic():
        take_revision(incident, expected_revision, state=to_state, **columns)
        text = f"{IncidentState(from_state).label} → {to_state.label}"
        log(incident, actor, IncidentEntryKind.STATE, f"{text}: {reason}" if reason else text)
        record_audit(
            actor=actor,
            action=f"incident.{to_state}",
            target=incident,
            before={"state": str(from_state)},
            after={"state": str(to_state)},
            reason=reason,
        )
    return get_incident(incident.number)
