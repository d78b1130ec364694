"""Real threads on a real database: one incident of a run and symptom; of several symptoms all but one ask."""

import functools

import pytest

from registry.errors import AssayError
from tests.fixtures.incidents import make_incident, make_run
from tests.fixtures.registry import make_caller
from tests.registry.services.test_races import run_together
from training.engine.handbook.rows import HandbookRow
from training.errors import IncidentChanged
from training.models import Incident, IncidentEntry, Symptom, TrainingRun
from training.selectors.incidents import get_incident
from training.services.handbook import load_shipped_handbook
from training.services.incident_changes import dismiss_incident, resolve_incident
from training.services.incidents import note_finding

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store")]


def note(run: TrainingRun, row: str | None = "loss-flat") -> Incident | None:
    return note_finding(run=run, code="x", row=row, severity="error", message="m", step=1)


@pytest.mark.parametrize("row", ["loss-flat", None])
def test_an_incident_is_opened_once(row: str | None) -> None:
    run = make_run()
    results = run_together(*[functools.partial(note, run, row)] * 4)
    assert len({incident.number for incident in results}) == 1
    assert (Incident.objects.count(), IncidentEntry.objects.count()) == (1, 1)
    # The first of them brought the handbook in, once.
    assert Symptom.objects.count() == len(HandbookRow)


def test_of_several_at_once_all_but_the_first_ask_for_a_check() -> None:
    load_shipped_handbook()
    runs = [make_run(f"run-{number}") for number in range(4)]
    run_together(*(functools.partial(note, run) for run in runs))
    asks = Incident.objects.order_by("number").values_list("asks_for_check", flat=True)
    assert list(asks) == [False, True, True, True]


def test_an_incident_is_closed_once() -> None:
    anna = make_caller("review")
    incident = make_incident(make_caller("submit").actor)
    results = run_together(
        functools.partial(
            resolve_incident, incident=incident, cause="c", fix="f", expected_revision=0, actor=anna.actor
        ),
        functools.partial(
            dismiss_incident, incident=incident, reason="r", expected_revision=0, actor=anna.actor
        ),
    )
    (fault,) = [result for result in results if isinstance(result, AssayError)]
    assert isinstance(fault, IncidentChanged)
    closed = get_incident(incident.number)
    assert (closed.state in ("resolved", "dismissed"), closed.revision) == (True, 1)
    assert closed.entries.count() == 1
