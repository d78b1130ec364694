"""What people say of the samples of a triage, and its end with a stored verdict."""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evaluation.choices import TriageState
from evaluation.engine.triage.kinds import CONFIRMABLE
from evaluation.errors import PersonNeeded, TriageConflict, TriageItemChanged, TriageRefused
from evaluation.models import Triage, TriageItem
from evaluation.selectors.triages import current_verdict, get_triage, get_triage_item, item_etag
from evaluation.services.triages import change_state
from registry.artifacts.findings import shown
from registry.choices import TokenScope
from registry.errors import Fault
from registry.services.actors import Actor
from registry.services.audit import record_audit

MAX_NOTE_CHARACTERS = 2000


def confirm_item(
    *, triage: Triage, position: int, kind: str, expected_revision: int, actor: Actor, note: str = ""
) -> TriageItem:
    """Notes what a person says that a sample lacks, be it what the rules say or something else.

    Args:
        triage: A sorted triage.
        position: Of the sample, from 1.
        kind: A `FailureKind`, or `correct`; "" takes a word back.
        expected_revision: Of the item as the person saw it.
        actor: A person with the scope `review`.
        note: For people.

    Raises:
        ScopeError: the actor may not review.
        PersonNeeded: there is no person behind the actor.
        EvaluationNotFound: no such position.
        TriageRefused: an unknown kind or an unusable note (code `triage-word-invalid`; every fault at once).
        TriageItemChanged: the item has another revision by now.
        TriageConflict: the triage is not sorted yet, or closed.
    """
    actor.require(TokenScope.REVIEW)
    if actor.user is None:
        raise PersonNeeded("triage-person-needed")
    _require_sound(kind, note)
    with transaction.atomic():
        # The triage's row orders words and its end, so that a closed verdict is of the words that it shows.
        locked = Triage.objects.select_for_update().get(pk=triage.pk)
        if locked.state != TriageState.SORTED:
            raise TriageConflict("triage-not-sorted", state=locked.state)
        before = get_triage_item(locked, position)
        is_changed = locked.items.filter(position=position, revision=expected_revision).update(
            confirmed_kind=kind,
            note=note,
            confirmed_by=actor.user if kind else None,
            confirmed_at=timezone.now() if kind else None,
            revision=F("revision") + 1,
        )
        if not is_changed:
            raise _item_changed(before)
        item = get_triage_item(locked, position)
        record_audit(
            actor=actor,
            action="triage.confirm",
            target=item,
            before={"kind": before.confirmed_kind},
            after={
                "kind": kind,
                "rules": item.rule_kind,
                "triage": str(triage.pk),
                "sample": item.sample_id,
            },
            reason=note,
        )
    return item


def close_triage(*, triage: Triage, actor: Actor, allow_unconfirmed: bool = False) -> Triage:
    """Ends a triage: the verdict out of what rules and people said is stored with its reasons.

    Args:
        triage: A sorted triage.
        actor: A person with the scope `review`.
        allow_unconfirmed: Whether failures that nobody has confirmed may stay so; the verdict says that it is
            preliminary then.

    Raises:
        ScopeError: the actor may not review.
        PersonNeeded: there is no person behind the actor.
        TriageConflict: it is not sorted yet, closed already, or has unconfirmed failures.
    """
    actor.require(TokenScope.REVIEW)
    if actor.user is None:
        raise PersonNeeded("triage-person-needed")
    with transaction.atomic():
        locked = Triage.objects.select_for_update().get(pk=triage.pk)
        verdict = current_verdict(locked)
        if locked.state != TriageState.SORTED or verdict is None:
            raise TriageConflict("triage-not-sorted", state=locked.state)
        if verdict.is_preliminary and not allow_unconfirmed:
            raise TriageConflict("triage-unconfirmed", num_open=verdict.num_unconfirmed)
        document = verdict.to_json()
        change_state(
            locked,
            TriageState.CLOSED,
            actor,
            verdict=document,
            closed_by=actor.user,
            closed_at=timezone.now(),
        )
        record_audit(actor=actor, action="triage.verdict", target=locked, after=document)
    return get_triage(triage.pk)


def _item_changed(item: TriageItem) -> TriageItemChanged:
    person = item.confirmed_by.get_username() if item.confirmed_by else "Somebody"
    return TriageItemChanged(
        "triage-item-changed",
        position=item.position,
        person=person,
        kind=item.confirmed_kind or "taken back",
        etag=item_etag(item),
        revision=item.revision,
    )


def _require_sound(kind: str, note: str) -> None:
    faults = []
    if kind not in ("", *CONFIRMABLE):
        message = f"{shown(kind)!r} is none of {', '.join(CONFIRMABLE)}; leave it empty to take a word back."
        faults.append(Fault(code="kind-unknown", message=message, where="/kind"))
    if len(note) > MAX_NOTE_CHARACTERS:
        message = f"{len(note)} characters; at most {MAX_NOTE_CHARACTERS} are allowed."
        faults.append(Fault(code="text-too-long", message=message, where="/note"))
    if "\0" in note:
        message = "A NUL character cannot be stored."
        faults.append(Fault(code="unstorable-text", message=message, where="/note"))
    if faults:
        raise TriageRefused("triage-word-invalid", faults=faults)
