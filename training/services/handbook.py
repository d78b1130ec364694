"""The handbook's rows: brought in from what this version ships, and changed by people.

Text that people have written is never overwritten by text that is shipped; only people go back to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from registry.choices import TokenScope
from registry.services.actors import SYSTEM, Actor
from registry.services.audit import record_audit
from training.choices import HandbookLanguage, SymptomOrigin
from training.engine.handbook.entries import HandbookEntry, read_handbook
from training.errors import HandbookRowChanged, TrainingConflict, TrainingInvalid
from training.models import Symptom, SymptomText
from training.selectors.handbook import get_symptom
from training.services.handbook_drafts import RowDraft, TextDraft, list_draft_faults

ShippedRow = Mapping[str, HandbookEntry]
"""One row as it is shipped, in each language."""

_POSITION_STEP: Final = 10
"""Positions of shipped rows lie so far apart that a later version can put rows between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandbookLoad:
    """What bringing in the shipped rows did; `num_kept` rows were edited by people and left alone."""

    num_added: int = 0
    num_updated: int = 0
    num_kept: int = 0


def load_shipped_handbook() -> HandbookLoad:
    """Brings the shipped rows into the database; again, it changes nothing.

    Raises:
        HandbookInvalid: a shipped file has faults.
    """
    counts = {"num_added": 0, "num_updated": 0, "num_kept": 0}
    for code, (position, texts) in read_shipped_rows().items():
        with transaction.atomic():
            row, is_new = Symptom.objects.get_or_create(
                code=code, defaults={"origin": SymptomOrigin.SHIPPED, **_columns(position, texts)}
            )
            locked = Symptom.objects.select_for_update().get(pk=row.pk)
            if locked.edited_at is not None or locked.origin == SymptomOrigin.OWN:
                counts["num_kept"] += 1
            elif _write_shipped(locked, position, texts) or is_new:
                counts["num_added" if is_new else "num_updated"] += 1
                action = "handbook.load" if is_new else "handbook.update"
                record_audit(actor=SYSTEM, action=action, target=locked, after={"code": code})
    return HandbookLoad(**counts)


def read_shipped_rows() -> dict[str, tuple[int, ShippedRow]]:
    """Code to position and texts of each row that this version ships.

    Raises:
        HandbookInvalid: a shipped file has faults.
    """
    languages = {str(language): read_handbook(language) for language in HandbookLanguage.values}
    rows: dict[str, tuple[int, dict[str, HandbookEntry]]] = {}
    for language, entries in languages.items():
        for index, entry in enumerate(entries, start=1):
            _, texts = rows.setdefault(str(entry.code), (index * _POSITION_STEP, {}))
            texts[language] = entry
    return dict(rows)


def add_row(*, draft: RowDraft, actor: Actor) -> Symptom:
    """Adds a row of the people of this server.

    Raises:
        ScopeError: the actor may not review.
        TrainingInvalid: the row has faults (code `handbook-row-invalid`; every fault at once).
        TrainingConflict: there is a row of this code.
    """
    actor.require(TokenScope.REVIEW)
    _require_sound(draft)
    with transaction.atomic():
        last = Symptom.objects.aggregate(last=Max("position"))["last"] or 0
        row, is_new = Symptom.objects.get_or_create(
            code=draft.code,
            defaults={
                "origin": SymptomOrigin.OWN,
                "symptom_class": draft.symptom_class,
                "position": last + _POSITION_STEP,
                "detectors": list(draft.detectors),
                "created_by": actor.user,
                "edited_by": actor.user,
                "edited_at": timezone.now(),
            },
        )
        if not is_new:
            raise TrainingConflict("handbook-row-exists", row=draft.code)
        _write_texts(row, draft.texts)
        record_audit(actor=actor, action="handbook.add", target=row, after=draft.to_json())
    return get_symptom(row.code)


def edit_row(*, draft: RowDraft, expected_revision: int, actor: Actor) -> Symptom:
    """Changes a row. From then on no newer shipped text takes the place of it.

    Args:
        draft: The whole row of its code as it shall be; a language that is not in it loses its text.
        expected_revision: Of the row as the person saw it.
        actor: With the scope `review`.

    Raises:
        ScopeError: the actor may not review.
        TrainingNotFound: there is no such row.
        TrainingInvalid: the row has faults (code `handbook-row-invalid`; every fault at once).
        HandbookRowChanged: the row has another revision by now.
    """
    actor.require(TokenScope.REVIEW)
    _require_sound(draft)
    with transaction.atomic():
        row = get_symptom(draft.code)
        before = read_draft(row)
        # What stays as it was is no edit, so that a newer shipped text still comes in.
        if row.revision == expected_revision and before == draft:
            return row
        _take_revision(
            row,
            expected_revision,
            symptom_class=draft.symptom_class,
            detectors=list(draft.detectors),
            edited_by=actor.user,
            edited_at=timezone.now(),
        )
        _write_texts(row, draft.texts)
        record_audit(
            actor=actor,
            action="handbook.edit",
            target=row,
            before=before.to_json(),
            after=draft.to_json(),
        )
    return get_symptom(draft.code)


def restore_row(*, code: str, expected_revision: int, actor: Actor) -> Symptom:
    """Goes back to the text that this version ships.

    Raises:
        ScopeError: the actor may not review.
        TrainingNotFound: there is no such row.
        TrainingConflict: this version ships no such row.
        HandbookRowChanged: the row has another revision by now.
    """
    actor.require(TokenScope.REVIEW)
    shipped = read_shipped_rows().get(code)
    with transaction.atomic():
        row = get_symptom(code)
        if shipped is None:
            raise TrainingConflict("handbook-row-not-shipped", row=code)
        before = read_draft(row)
        columns = {"origin": SymptomOrigin.SHIPPED, "edited_by": None, "edited_at": None}
        _take_revision(row, expected_revision, **columns)
        row.refresh_from_db()
        _write_shipped(row, *shipped)
        record_audit(actor=actor, action="handbook.restore", target=row, before=before.to_json(), after={})
    return get_symptom(code)


def read_draft(row: Symptom) -> RowDraft:
    """The row as it stands, in the shape in which it is edited."""
    return RowDraft(
        code=row.code,
        symptom_class=row.symptom_class,
        detectors=tuple(row.detectors),
        texts={
            text.language: TextDraft(
                symptom=text.symptom,
                causes=tuple(text.causes),
                treatment=tuple(text.treatment),
                source=text.source,
            )
            for text in row.texts.all()
        },
    )


def _require_sound(draft: RowDraft) -> None:
    if faults := list_draft_faults(draft):
        raise TrainingInvalid("handbook-row-invalid", faults=faults)


def _take_revision(row: Symptom, expected_revision: int, **columns: object) -> None:
    rows = Symptom.objects.filter(pk=row.pk, revision=expected_revision)
    if not rows.update(revision=F("revision") + 1, **columns):
        raise HandbookRowChanged("handbook-row-changed", row=row.code)


def _write_texts(row: Symptom, texts: Mapping[str, TextDraft]) -> None:
    row.texts.exclude(language__in=texts).delete()
    for language, text in texts.items():
        SymptomText.objects.update_or_create(row=row, language=language, defaults=text.to_json())


def _columns(position: int, texts: ShippedRow) -> dict[str, object]:
    entry = texts[HandbookLanguage.EN]
    return {
        "symptom_class": str(entry.symptom_class),
        "position": position,
        "detectors": list(entry.detectors),
    }


def _write_shipped(row: Symptom, position: int, texts: ShippedRow) -> bool:
    """Whether that changed anything."""
    columns = _columns(position, texts)
    drafts = {
        language: TextDraft(
            symptom=entry.symptom, causes=entry.causes, treatment=entry.treatment, source=entry.source
        )
        for language, entry in texts.items()
    }
    is_same = read_draft(row).texts == drafts and all(
        getattr(row, key) == value for key, value in columns.items()
    )
    if is_same:
        return False
    Symptom.objects.filter(pk=row.pk).update(**columns)
    _write_texts(row, drafts)
    return True
