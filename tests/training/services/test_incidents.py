"""Incidents: opened once, closed by people, and asked to become checks when they recur."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from registry.errors import IllegalTransition, ScopeError
from registry.models import AuditEvent, Job
from registry.services.actors import SYSTEM
from tests.fixtures.incidents import make_incident, make_run
from tests.fixtures.registry import Caller, make_caller
from training.choices import INCIDENT_TRANSITIONS, IncidentState
from training.errors import IncidentChanged, ReviewerNeeded, TrainingConflict, TrainingInvalid
from training.models import Incident, MetricPoint, RunDocument, Symptom, TrainingRun
from training.selectors.incidents import get_incident, list_entries, list_incidents, word_check_question
from training.services.incident_changes import (
    add_step,
    answer_check,
    begin_investigation,
    dismiss_incident,
    edit_incident,
    resolve_incident,
)
from training.services.incident_requests import IncidentRequest
from training.services.incidents import note_failed_run, note_finding, note_preflight, open_incident

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


@pytest.fixture
def anna() -> Caller:
    return make_caller("review", "submit")


def note(run: TrainingRun, **changes: Any) -> Incident | None:
    values: dict[str, Any] = {
        "code": "loss-flat",
        "row": "loss-flat",
        "severity": "error",
        "message": "The loss moved by 0.01 in 50 steps.",
        "step": 50,
    } | changes
    return note_finding(run=run, **values)


def noted(run: TrainingRun, **changes: Any) -> Incident:
    incident = note(run, **changes)
    assert incident is not None
    return get_incident(incident.number)


def lines(incident: Incident) -> list[tuple[str, str, str]]:
    return [(entry.kind, entry.detector, entry.text) for entry in list_entries(incident)]


def make_job(cache_key: str = "a" * 64) -> Job:
    return Job.objects.create(kind="train", cache_key=cache_key, code_version="train@2", state="running")


def test_a_finding_opens_one_incident() -> None:
    run = make_run(job=make_job())
    incident = noted(run)
    assert (incident.title, incident.symptom_id, incident.first_step) == (
        "loss-flat in tickets-lora",
        "loss-flat",
        50,
    )
    assert (incident.state, incident.opened_by, incident.created_by) == ("open", "diagnosis", None)
    assert incident.found == "monitor/loss-flat: The loss moved by 0.01 in 50 steps."
    # The fingerprint is known before the run ends: it is the digest of what its job was given.
    assert incident.fingerprint == "a" * 64
    assert incident.configuration["config"] == {"training": {"max_steps": 5}}
    assert (incident.configuration["base_model"], incident.configuration["code_version"]) == (
        "tiny",
        "train@2",
    )
    assert noted(run) == incident
    assert noted(run, code="low-rate", message="The rate is 2e-5.") == incident
    assert lines(incident) == [
        ("finding", "monitor/loss-flat", "The loss moved by 0.01 in 50 steps."),
        ("finding", "monitor/low-rate", "The rate is 2e-5."),
    ]
    assert AuditEvent.objects.filter(action="incident.open").count() == 1


@pytest.mark.parametrize("severity", ["warning", "info", "nonsense"])
def test_what_is_no_error_opens_none(severity: str) -> None:
    assert note(make_run(), severity=severity) is None
    assert not Incident.objects.exists()


def test_each_symptom_of_a_run_is_an_incident_of_its_own() -> None:
    run = make_run()
    numbers = {
        noted(run, row=row, code=str(row)).number for row in ("loss-flat", "gradient-small", None, "no-such")
    }
    assert len(numbers) == 3
    assert Incident.objects.filter(symptom=None).count() == 1


def test_runs_that_share_a_job_share_its_incidents() -> None:
    job = make_job()
    assert noted(make_run(job=job)) == noted(make_run("again", job=job))
    assert noted(make_run("other")).asks_for_check


def test_a_failed_preflight() -> None:
    run = make_run()
    checks: list[dict[str, Any]] = [
        {"code": "mask", "status": "failed", "message": "All labels are -100.", "row": "wrong-data"},
        {"code": "template", "status": "failed", "message": "Doubled system prompt.", "row": "wrong-data"},
        {"code": "lengths", "status": "warning", "message": "Long.", "row": "wrong-data"},
        {"code": "speed", "status": "failed", "message": "Slow.", "row": None},
    ]
    first, again, rowless = note_preflight(run=run, checks=checks)
    assert first == again and rowless.symptom_id is None
    assert (first.symptom_id, first.first_step) == ("wrong-data", 0)
    assert [detector for _, detector, _ in lines(first)] == ["preflight/mask", "preflight/template"]
    # The failure names the same row once more; that is not another incident, nor another finding.
    run.failure = {"code": "preflight-failed", "message": "No.", "rows": ["wrong-data"]}
    assert note_failed_run(run=run) == []
    assert Incident.objects.count() == 2


def test_what_a_job_says_is_kept_as_far_as_it_can_be() -> None:
    incident = noted(make_run(), message="\0" + "x" * 9000, code="c" * 200)
    (entry,) = list_entries(incident)
    assert (entry.text[:2], len(entry.text), len(entry.detector)) == ("\ufffdx", 4000, 96)
    strange: list[dict[str, Any]] = [
        {"code": "mask", "status": "failed", "row": ["wrong-data"]},
        {"status": 1},
    ]
    (opened,) = note_preflight(run=make_run("other"), checks=strange)
    assert (opened.symptom_id, opened.title) == (None, "mask in other")


def test_a_run_out_of_memory() -> None:
    failure = {
        "code": "out-of-memory",
        "message": "CUDA out of memory.",
        "rows": ["out-of-memory-later", "loss-flat"],
    }
    run = make_run(failure=failure)
    MetricPoint.objects.create(run=run, step=120, name="loss", value=1.0)
    noted(run)
    (incident,) = note_failed_run(run=run)
    assert (incident.symptom_id, incident.first_step) == ("out-of-memory-later", 120)
    assert incident.found == "run/out-of-memory: CUDA out of memory."
    assert note_failed_run(run=run) == []


def test_a_loss_that_is_not_finite_begins_where_it_was_bisected_to() -> None:
    run = make_run(failure={"code": "loss-not-finite", "message": "NaN.", "rows": ["loss-not-finite"]})
    MetricPoint.objects.create(run=run, step=40, name="loss", value=1.0)
    RunDocument.objects.create(run=run, name="not_finite", content={"first_bad_step": 33})
    (incident,) = note_failed_run(run=run)
    assert incident.first_step == 33


def test_other_failures_open_none() -> None:
    assert note_failed_run(run=make_run(failure={"code": "data-missing", "message": "No file."})) == []
    assert note_failed_run(run=make_run()) == []


def test_the_second_time_asks_for_a_check(anna: Caller) -> None:
    first, second = noted(make_run("one")), noted(make_run("two"))
    assert (first.asks_for_check, second.asks_for_check) == (False, True)
    assert word_check_question(first) is None
    question = word_check_question(second)
    assert question is not None and question.startswith(
        "This symptom occurred twice within 180 days: make it a check"
    )
    assert [row.number for row in list_incidents(asks_for_check=True)] == [second.number]

    answered = answer_check(
        incident=second, answer="made", text="lint/learning-rate", expected_revision=0, actor=anna.actor
    )
    assert (answered.check_answer, answered.check_text, answered.check_by) == (
        "made",
        "lint/learning-rate",
        anna.user,
    )
    assert not list_incidents(asks_for_check=True).exists()
    assert lines(answered)[-1] == ("check", "", "A check was made: lint/learning-rate")
    # It came back although there is a check.
    third = noted(make_run("three"))
    question = word_check_question(third)
    assert question is not None
    assert "occurred 3 times" in question and f"after incident #{second.number} did not stop it" in question

    answer_check(incident=third, answer="declined", text="Too rare.", expected_revision=0, actor=anna.actor)
    assert not noted(make_run("four")).asks_for_check


@pytest.mark.parametrize(("days", "asks"), [(179, True), (181, False)])
def test_what_is_long_ago_is_no_recurrence(anna: Caller, days: int, asks: bool) -> None:
    make_incident(anna.actor, opened_at=timezone.now() - timedelta(days=days))
    assert noted(make_run()).asks_for_check is asks


def test_what_was_no_incident_is_no_occurrence(anna: Caller) -> None:
    first = make_incident(anna.actor)
    dismiss_incident(incident=first, reason="A test run.", expected_revision=0, actor=anna.actor)
    assert not make_incident(anna.actor).asks_for_check
    assert not make_incident(anna.actor, symptom=None).asks_for_check
    assert not make_incident(anna.actor, symptom=None).asks_for_check


def test_the_way_of_an_incident(anna: Caller) -> None:
    run = make_run()
    incident = make_incident(anna.actor, training_run=str(run.pk), found="By eye.", first_step=3)
    assert (incident.training_run, incident.created_by, incident.opened_by) == (run, anna.user, "person")
    assert len(incident.fingerprint) == 64 and incident.configuration["name"] == run.name
    incident = begin_investigation(incident=incident, expected_revision=0, actor=anna.actor)
    add_step(incident=incident, text="Decoded a batch.", actor=anna.actor)
    incident = edit_incident(
        incident=incident, changes={"cause": "Mask.", "title": "Flat"}, expected_revision=1, actor=anna.actor
    )
    assert (incident.cause, incident.title, incident.revision) == ("Mask.", "Flat", 2)
    closed = resolve_incident(
        incident=incident, cause="The mask.", fix="Mended.", expected_revision=2, actor=anna.actor
    )
    assert (closed.state, closed.cause, closed.fix) == ("resolved", "The mask.", "Mended.")
    assert closed.closed_at is not None
    # What is learnt later may still be noted.
    add_step(incident=closed, text="Also in run two.", actor=anna.actor)
    assert [(kind, text) for kind, _, text in lines(closed)] == [
        ("state", "Open → Being Investigated"),
        ("step", "Decoded a batch."),
        ("edit", "Changed: cause, title."),
        ("state", "Being Investigated → Resolved"),
        ("step", "Also in run two."),
    ]
    actions = AuditEvent.objects.filter(object_type="training.incident").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == [
        "incident.open",
        "incident.being-investigated",
        "incident.note",
        "incident.edit",
        "incident.resolved",
        "incident.note",
    ]


def test_illegal_changes_of_state(anna: Caller) -> None:
    calls: dict[str, Any] = {
        IncidentState.BEING_INVESTIGATED: lambda row: begin_investigation(
            incident=row, expected_revision=row.revision, actor=anna.actor
        ),
        IncidentState.RESOLVED: lambda row: resolve_incident(
            incident=row, cause="c", fix="f", expected_revision=row.revision, actor=anna.actor
        ),
        IncidentState.DISMISSED: lambda row: dismiss_incident(
            incident=row, reason="r", expected_revision=row.revision, actor=anna.actor
        ),
    }
    for from_state, allowed in INCIDENT_TRANSITIONS.items():
        for to_state, call in calls.items():
            incident = make_incident(anna.actor)
            Incident.objects.filter(pk=incident.pk).update(state=from_state)
            incident = get_incident(incident.number)
            if to_state in allowed:
                assert call(incident).state == to_state
            else:
                with pytest.raises(IllegalTransition):
                    call(incident)


def test_a_change_of_what_was_not_seen_is_refused(anna: Caller) -> None:
    incident = make_incident(anna.actor)
    begin_investigation(incident=incident, expected_revision=0, actor=anna.actor)
    with pytest.raises(IncidentChanged, match="it is 'being-investigated' \\(its ETag is r1\\)"):
        resolve_incident(incident=incident, cause="c", fix="f", expected_revision=0, actor=anna.actor)
    with pytest.raises(IncidentChanged):
        edit_incident(incident=incident, changes={"fix": "x"}, expected_revision=0, actor=anna.actor)
    fresh = get_incident(incident.number)
    # The text was written on what stood there before, whoever states the newest revision.
    with pytest.raises(IncidentChanged):
        dismiss_incident(incident=incident, reason="r", expected_revision=1, actor=anna.actor)
    assert (fresh.state, fresh.revision) == ("being-investigated", 1)


def test_another_symptom_may_recur(anna: Caller) -> None:
    make_incident(anna.actor)
    incident = make_incident(anna.actor, symptom="forgetting")
    changed = edit_incident(
        incident=incident, changes={"symptom": "loss-flat"}, expected_revision=0, actor=anna.actor
    )
    assert (changed.symptom_id, changed.asks_for_check) == ("loss-flat", True)
    back = edit_incident(incident=changed, changes={"symptom": None}, expected_revision=1, actor=anna.actor)
    assert (back.symptom_id, back.asks_for_check) == (None, False)
    with pytest.raises(TrainingConflict, match="Nothing asks"):
        answer_check(incident=back, answer="made", text="x", expected_revision=2, actor=anna.actor)


def test_all_faults_at_once(anna: Caller) -> None:
    request = IncidentRequest(
        title="two\nlines",
        symptom="loss-flatt",
        training_run="nonsense",
        evaluation_run="x" * 65,
        first_step=-1,
        found="\0",
    )
    make_incident(anna.actor)
    with pytest.raises(TrainingInvalid) as caught:
        open_incident(request=request, actor=anna.actor)
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [
        ("line-invalid", "/title"),
        ("handbook-row-not-found", "/symptom"),
        ("training-run-not-found", "/training_run"),
        ("text-too-long", "/evaluation_run"),
        ("first-step-invalid", "/first_step"),
        ("unstorable-text", "/found"),
    ]
    incident = make_incident(anna.actor)
    with pytest.raises(TrainingInvalid) as caught:
        resolve_incident(incident=incident, cause=" ", fix="", expected_revision=0, actor=anna.actor)
    assert [fault.where for fault in caught.value.faults] == ["/cause", "/fix"]
    with pytest.raises(TrainingInvalid) as caught:
        answer_check(incident=incident, answer="maybe", text="", expected_revision=0, actor=anna.actor)
    assert [fault.where for fault in caught.value.faults] == ["/text", "/answer"]


def test_rights(anna: Caller) -> None:
    incident = make_incident(anna.actor)
    reader, submitter = make_caller("read").actor, make_caller("submit").actor
    with pytest.raises(ScopeError):
        open_incident(request=IncidentRequest(title="x"), actor=reader)
    with pytest.raises(ScopeError):
        add_step(incident=incident, text="x", actor=reader)
    assert open_incident(request=IncidentRequest(title="x"), actor=submitter).created_by == submitter.user
    begin_investigation(incident=incident, expected_revision=0, actor=submitter)
    with pytest.raises(ScopeError):
        resolve_incident(incident=incident, cause="c", fix="f", expected_revision=1, actor=submitter)
    with pytest.raises(ScopeError):
        answer_check(incident=incident, answer="made", text="x", expected_revision=1, actor=submitter)
    with pytest.raises(ReviewerNeeded):
        dismiss_incident(incident=incident, reason="r", expected_revision=1, actor=SYSTEM)


def test_the_register_brings_its_handbook_along() -> None:
    assert not Symptom.objects.exists()
    assert noted(make_run()).symptom_id == "loss-flat"
