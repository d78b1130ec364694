"""The register's pages work with plain forms, show foreign text as text, and refuse what was not seen."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from registry.services.actors import SYSTEM
from tests.fixtures.incidents import make_incident, make_run
from training.models import Incident
from training.selectors.incidents import get_incident
from training.services.handbook import load_shipped_handbook
from training.services.incidents import note_finding

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

SCRIPT = "<script>alert(1)</script>\u202e"


@pytest.fixture
def anna() -> Client:
    load_shipped_handbook()
    user = User.objects.create_user("anna", is_staff=True)
    user.groups.add(Group.objects.get(name="reviewers"))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def incident(anna: Client) -> Incident:
    """The second one of its symptom, opened by the diagnosis, with hostile texts."""
    for name in ("one", "two"):
        run = make_run(name, config={"note": SCRIPT})
        found = note_finding(
            run=run, code="loss-flat", row="loss-flat", severity="error", message=SCRIPT, step=50
        )
    assert found is not None
    Incident.objects.filter(pk=found.pk).update(title=SCRIPT, cause=SCRIPT)
    return get_incident(found.number)


def url(name: str, incident: Incident) -> str:
    return reverse(f"admin:training_incident_{name}", args=[incident.number])


def test_the_list_has_filters_and_leads_to_the_pages(anna: Client, incident: Incident) -> None:
    address = reverse("admin:training_incident_changelist")
    text = anna.get(address).content.decode()
    assert url("page", incident) in text and "\u202e" not in text and "<script>alert" not in text
    assert "asked for" in text
    assert reverse("admin:training_incident_open_quarterly_review") in text
    for query in (
        "state__exact=open",
        "asks_for_check__exact=1",
        "symptom__symptom_class__exact=not-converging",
        "q=loss",
    ):
        assert anna.get(f"{address}?{query}").status_code == 200
    found = anna.get(f"{address}?asks_for_check__exact=1").content.decode()
    first = Incident.objects.exclude(pk=incident.pk).get()
    assert found.count("/page/") >= 1 and url("page", first) not in found


def test_the_page(anna: Client, incident: Incident) -> None:
    text = anna.get(url("page", incident)).content.decode()
    assert "<script>alert" not in text and "RIGHT-TO-LEFT OVERRIDE" in text
    # Only in fields that are sent back does a text stand as it is.
    assert text.index("\u202e") > text.index('id="id_title"')
    assert reverse("admin:training_trainingrun_report", args=[incident.training_run_id]) in text
    assert "This symptom occurred twice within 180 days: make it a check" in text
    assert "Raise the learning rate tenfold" in text
    assert 'title="' + incident.fingerprint in text and "monitor/loss-flat" in text
    assert anna.get(reverse("admin:training_incident_page", args=[999])).status_code == 404


def test_the_way_of_an_incident(anna: Client, incident: Incident) -> None:
    def send(name: str, revision: int, **more: str) -> Any:
        return anna.post(url(name, incident), {"revision": revision, **more})

    assert anna.get(url("resolve", incident)).status_code == 405
    assert send("investigate", 0).status_code == 302
    assert send("step", 0, text="Decoded.\r\nAll masked.").status_code == 302
    fields = {"title": "Flat", "symptom": "loss-flat", "first_step": "40", "found": "Seen.", "cause": "Mask."}
    assert send("page", 1, **fields).status_code == 302
    assert send("check", 2, answer="made", text="lint/mask").status_code == 302
    assert send("resolve", 3, cause="The mask.", fix="Mended.").status_code == 302
    done = get_incident(incident.number)
    assert (done.state, done.title, done.first_step, done.cause, done.fix, done.check_text) == (
        "resolved", "Flat", 40, "The mask.", "Mended.", "lint/mask",
    )  # fmt: skip
    text = anna.get(url("page", incident)).content.decode()
    assert "A check was made" in text and "Close the incident" not in text
    assert "Being Investigated → Resolved" in text
    assert done.entries.get(kind="step").text == "Decoded.\nAll masked."
    assert send("dismiss", 4, reason="x").status_code == 409


def test_conflicts_and_faults_keep_what_was_written(anna: Client, incident: Incident) -> None:
    anna.post(url("investigate", incident), {"revision": 0})
    answer = anna.post(url("resolve", incident), {"revision": 0, "cause": "Mine", "fix": "Oil"})
    text = answer.content.decode()
    assert answer.status_code == 412 and "was changed meanwhile" in text and "Mine</textarea>" in text
    answer = anna.post(url("resolve", incident), {"revision": 1, "cause": "Mine", "fix": ""})
    assert answer.status_code == 422 and "Mine</textarea>" in answer.content.decode()
    assert anna.post(url("resolve", incident), {"cause": "a", "fix": "b"}).status_code == 412
    answer = anna.post(url("page", incident), {"revision": 1, "title": "", "symptom": "nonsense"})
    assert answer.status_code == 422 and "/symptom" in answer.content.decode()
    answer = anna.post(url("page", incident), {"revision": 1, "title": "x", "first_step": "many"})
    assert answer.status_code == 422
    assert get_incident(incident.number).state == "being-investigated"


def test_opening_by_hand(anna: Client) -> None:
    run = make_run()
    add = reverse("admin:training_incident_add")
    shown = anna.get(add, {"training_run": str(run.pk), "symptom": "forgetting"}).content.decode()
    assert f'value="{run.pk}"' in shown and '<option value="forgetting" selected>' in shown
    answer = anna.post(add, {"title": "Odd", "training_run": "nonsense", "symptom": ""})
    assert answer.status_code == 422 and 'value="Odd"' in answer.content.decode()
    answer = anna.post(add, {"title": "Odd", "training_run": str(run.pk), "symptom": "", "first_step": "7"})
    opened = Incident.objects.get()
    assert answer["Location"] == url("page", opened)
    assert (opened.training_run, opened.symptom, opened.opened_by, opened.first_step) == (
        run,
        None,
        "person",
        7,
    )
    assert "no row of the handbook" in anna.get(url("page", opened)).content.decode()


def test_the_quarter(anna: Client, incident: Incident) -> None:
    rowless = make_incident(SYSTEM, symptom=None, title=SCRIPT)
    address = reverse("admin:training_incident_quarterly")
    text = anna.get(address).content.decode()
    assert SCRIPT not in text and "2 times in 180 days" in text and url("page", rowless) in text
    assert "No incidents." in anna.get(f"{address}?quarter=2020Q1").content.decode()
    assert "is no quarter" in anna.get(f"{address}?quarter={SCRIPT}").content.decode()
    report = reverse("admin:training_incident_quarterly_report")
    got = anna.get(f"{report}?quarter=2020Q1")
    assert got["Content-Disposition"] == 'attachment; filename="incidents-2020Q1.md"'
    assert anna.get(report).status_code == 404


def test_rights(incident: Incident) -> None:
    reader = Client()
    reader.force_login(User.objects.create_user("reader", is_staff=True))
    text = reader.get(url("page", incident)).content.decode()
    for words in (
        "Note the step",
        "Keep the changes",
        "Close the incident",
        "Begin to investigate",
        "Keep the answer",
    ):
        assert words not in text
    assert reader.post(url("step", incident), {"text": "x"}).status_code == 403
    assert reader.post(url("page", incident), {"revision": 0, "title": "x"}).status_code == 403
    assert reader.get(reverse("admin:training_incident_add")).status_code == 403
    assert Client().get(reverse("admin:training_incident_quarterly")).status_code == 302
