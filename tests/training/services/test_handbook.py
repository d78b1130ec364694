"""Shipped rows come in once, people's texts stay, and each change is a compare-and-set with an audit row."""

import dataclasses
from typing import Any

import pytest

from registry.errors import ScopeError
from registry.models import AuditEvent
from tests.fixtures.registry import make_caller
from training.engine.handbook.entries import HandbookEntry
from training.engine.handbook.rows import HandbookRow, SymptomClass
from training.errors import HandbookRowChanged, TrainingConflict, TrainingInvalid, TrainingNotFound
from training.models import Symptom
from training.selectors.handbook import choose_text, get_symptom, list_symptoms, name_symptom
from training.services import handbook
from training.services.handbook import (
    HandbookLoad,
    add_row,
    edit_row,
    load_shipped_handbook,
    read_draft,
    restore_row,
)
from training.services.handbook_drafts import RowDraft, TextDraft

pytestmark = pytest.mark.django_db

TEXT = TextDraft(symptom="It hums.", causes=("Fan.",), treatment=("Listen.", "Oil it."), source="Us")


def entry(code: HandbookRow, symptom: str) -> HandbookEntry:
    return HandbookEntry(
        code=code,
        symptom_class=SymptomClass.NOT_CONVERGING,
        symptom=symptom,
        causes=("cause",),
        treatment=("treatment",),
        detectors=("monitor/loss-flat",),
        source="seed",
    )


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[HandbookEntry, ...]]:
    """Two rows in two languages, in place of the files."""
    rows = (HandbookRow.LOSS_FLAT, HandbookRow.LOSS_NEAR_ZERO)
    texts = {language: tuple(entry(row, f"{row} {language}") for row in rows) for language in ("en", "zh")}
    monkeypatch.setattr(handbook, "read_handbook", lambda language: texts[language])
    return texts


def draft(code: str = "fan-hums", **changes: Any) -> RowDraft:
    values: dict[str, Any] = {"symptom_class": "resource", "detectors": (), "texts": {"en": TEXT}} | changes
    return RowDraft(code=code, **values)


def actions() -> list[str]:
    return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))


def test_every_shipped_row_is_brought_in_once() -> None:
    # As many rows as the enumeration has; the first ten are those of the handbook's table, in its order.
    assert load_shipped_handbook() == HandbookLoad(num_added=len(HandbookRow))
    codes = [row.code for row in list_symptoms()]
    assert codes == [str(row) for row in HandbookRow]
    assert load_shipped_handbook() == HandbookLoad()
    row = get_symptom("loss-flat")
    assert (row.symptom_class, row.origin, row.edited_at) == ("not-converging", "shipped", None)
    assert {text.language for text in row.texts.all()} == {"en", "zh"}
    chinese = choose_text(row, "zh")
    assert chinese is not None and chinese.symptom != name_symptom(row)


def test_a_newer_text_takes_the_place_of_an_unedited_one_only(shipped: Any) -> None:
    load_shipped_handbook()
    anna = make_caller("review")
    before = read_draft(get_symptom("loss-flat"))
    mine = dataclasses.replace(before, texts={**before.texts, "zh": TEXT})
    edited = edit_row(draft=mine, expected_revision=0, actor=anna.actor)
    assert (edited.edited_by, edited.revision) == (anna.user, 1)
    for language in shipped:
        shipped[language] = tuple(
            dataclasses.replace(row, symptom=f"newer {row.symptom}") for row in shipped[language]
        )
    assert load_shipped_handbook() == HandbookLoad(num_updated=1, num_kept=1)
    assert name_symptom(get_symptom("loss-near-zero")) == "newer loss-near-zero en"
    assert name_symptom(get_symptom("loss-flat")) == "loss-flat en"
    assert name_symptom(get_symptom("loss-flat"), "zh") == "It hums."

    back = restore_row(code="loss-flat", expected_revision=1, actor=anna.actor)
    assert (name_symptom(back), name_symptom(back, "zh")) == ("newer loss-flat en", "newer loss-flat zh")
    assert (back.edited_at, back.edited_by, back.revision) == (None, None, 2)
    assert load_shipped_handbook() == HandbookLoad()
    assert actions()[-3:] == ["handbook.edit", "handbook.update", "handbook.restore"]


def test_saving_what_is_there_is_no_edit(shipped: Any) -> None:
    load_shipped_handbook()
    same = read_draft(get_symptom("loss-flat"))
    row = edit_row(draft=same, expected_revision=0, actor=make_caller("review").actor)
    assert (row.edited_at, row.revision) == (None, 0)


def test_the_second_of_two_edits_is_refused(shipped: Any) -> None:
    load_shipped_handbook()
    actor = make_caller("review").actor
    first = dataclasses.replace(read_draft(get_symptom("loss-flat")), detectors=("lint/a",))
    edit_row(draft=first, expected_revision=0, actor=actor)
    second = dataclasses.replace(first, detectors=("lint/b",))
    with pytest.raises(HandbookRowChanged):
        edit_row(draft=second, expected_revision=0, actor=actor)
    with pytest.raises(HandbookRowChanged):
        restore_row(code="loss-flat", expected_revision=0, actor=actor)
    assert get_symptom("loss-flat").detectors == ["lint/a"]


def test_own_rows(shipped: Any) -> None:
    load_shipped_handbook()
    actor = make_caller("review").actor
    row = add_row(draft=draft(), actor=actor)
    assert (row.origin, row.position > 20, name_symptom(row, "zh")) == ("own", True, "It hums.")
    with pytest.raises(TrainingConflict, match="has a row 'fan-hums' already"):
        add_row(draft=draft(), actor=actor)
    with pytest.raises(TrainingConflict, match="ships no row"):
        restore_row(code="fan-hums", expected_revision=0, actor=actor)
    # A later version that ships a row of the same code does not take it over.
    shipped["en"] += (entry(HandbookRow.FORGETTING, "ours"),)
    shipped["zh"] += (entry(HandbookRow.FORGETTING, "ours"),)
    add_row(draft=draft("forgetting"), actor=actor)
    assert load_shipped_handbook().num_kept == 2 - 1
    assert name_symptom(get_symptom("forgetting")) == "It hums."
    assert name_symptom(restore_row(code="forgetting", expected_revision=0, actor=actor)) == "ours"


def test_all_faults_at_once() -> None:
    bad = draft(
        "Fan hums",
        symptom_class="loud",
        detectors=("",),
        texts={
            "en": dataclasses.replace(TEXT, symptom=" ", causes=()),
            "fr": dataclasses.replace(TEXT, source="\0"),
        },
    )
    with pytest.raises(TrainingInvalid) as caught:
        add_row(draft=bad, actor=make_caller("review").actor)
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [
        ("code-invalid", "/code"),
        ("class-unknown", "/class"),
        ("text-missing", "/detectors/0"),
        ("text-missing", "/texts/en/symptom"),
        ("num-lines-invalid", "/texts/en/causes"),
        ("language-unknown", "/texts/fr"),
        ("unstorable-text", "/texts/fr/source"),
    ]
    assert not Symptom.objects.exists()


def test_rights_and_near_misses(shipped: Any) -> None:
    load_shipped_handbook()
    submitter = make_caller("submit", "read").actor
    with pytest.raises(ScopeError):
        add_row(draft=draft(), actor=submitter)
    with pytest.raises(ScopeError):
        edit_row(draft=draft("loss-flat"), expected_revision=0, actor=submitter)
    with pytest.raises(ScopeError):
        restore_row(code="loss-flat", expected_revision=0, actor=submitter)
    with pytest.raises(TrainingNotFound, match="Did you mean 'loss-flat'"):
        get_symptom("loss-flatt")
