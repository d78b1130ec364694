import pytest
from django.utils import timezone

from tests.fixtures.incidents import make_incident, make_run
from tests.fixtures.registry import Caller, assert_problem, make_caller
from training.services.handbook import load_shipped_handbook
from training.services.incidents import note_finding

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

INCIDENTS = "/api/v1/incidents"


@pytest.fixture
def anna() -> Caller:
    load_shipped_handbook()
    return make_caller("review", "submit", "read")


def test_the_handbook_in_both_languages(anna: Caller) -> None:
    rows = anna.client.get("/api/v1/handbook").json()["results"]
    assert [row["code"] for row in rows[:2]] == ["loss-flat", "loss-near-zero"]
    assert (rows[0]["language"], rows[0]["symptom_class"], rows[0]["is_edited"]) == (
        "en",
        "not-converging",
        False,
    )
    assert rows[0]["treatment"][0].startswith("Raise the learning rate tenfold")
    chinese = anna.client.get("/api/v1/handbook/loss-flat", {"language": "zh"}).json()
    assert (chinese["language"], chinese["detectors"]) == ("zh", rows[0]["detectors"])
    assert chinese["symptom"] != rows[0]["symptom"]
    assert_problem(anna.client.get("/api/v1/handbook", {"language": "fr"}), 400, "query-invalid")
    problem = assert_problem(anna.client.get("/api/v1/handbook/loss-flatt"), 404, "handbook-row-not-found")
    assert "loss-flat" in problem["detail"]


def test_the_way_of_an_incident(anna: Caller) -> None:
    run = make_run()
    body = {
        "title": "Flat",
        "symptom": "loss-flat",
        "training_run": str(run.pk),
        "first_step": 50,
        "found": "By eye.",
    }
    answer = anna.client.post(INCIDENTS, body, format="json")
    assert answer.status_code == 201, answer.content
    row = answer.json()
    assert (row["state"], row["opened_by"], row["created_by"], row["etag"]) == (
        "open", "person", anna.user.username, "r0",
    )  # fmt: skip
    assert answer.headers["ETag"] == '"r0"' and row["configuration"]["name"] == "tickets-lora"
    address = f"{INCIDENTS}/{row['number']}"
    assert row["links"]["page"].endswith(f"/admin/training/incident/{row['number']}/page/")

    begun = anna.client.post(f"{address}/investigate", headers={"If-Match": '"r0"'})
    assert begun.json()["state"] == "being-investigated"
    step = anna.client.post(f"{address}/entries", {"text": "Decoded a batch."}, format="json")
    assert (step.status_code, step.json()["kind"]) == (201, "step")
    edited = anna.client.patch(address, {"cause": "Mask.", "revision": 1}, format="json").json()
    assert (edited["cause"], edited["title"], edited["etag"]) == ("Mask.", "Flat", "r2")
    closed = anna.client.post(
        f"{address}/resolve", {"cause": "Mask.", "fix": "New mask.", "revision": 2}, format="json"
    )
    assert (closed.json()["state"], closed.json()["fix"]) == ("resolved", "New mask.")
    entries = anna.client.get(f"{address}/entries").json()["results"]
    assert [entry["kind"] for entry in entries] == ["state", "step", "edit", "state"]
    again = anna.client.post(f"{address}/dismiss", {"reason": "x", "revision": 3}, format="json")
    assert_problem(again, 409, "illegal-transition")


def test_changes_need_what_was_seen(anna: Caller) -> None:
    address = f"{INCIDENTS}/{make_incident(anna.actor).number}"
    assert_problem(anna.client.post(f"{address}/investigate"), 428, "precondition-required")
    assert_problem(anna.client.patch(address, {"fix": "x"}, format="json"), 428, "precondition-required")
    anna.client.patch(address, {"fix": "x", "revision": 0}, format="json")
    stale = anna.client.post(
        f"{address}/dismiss", {"reason": "x"}, format="json", headers={"If-Match": '"r0"'}
    )
    assert assert_problem(stale, 412, "incident-changed")["revision"] == 1


def test_a_recurrence_asks_for_a_check(anna: Caller) -> None:
    for name in ("one", "two"):
        note_finding(run=make_run(name), code="x", row="loss-flat", severity="error", message="m", step=1)
    (waiting,) = anna.client.get(INCIDENTS, {"asks_for_check": "true"}).json()["results"]
    address = f"{INCIDENTS}/{waiting['number']}"
    assert (
        "occurred twice within 180 days: make it a check" in anna.client.get(address).json()["check_question"]
    )
    problem = anna.client.post(
        f"{address}/check", {"answer": "perhaps", "text": "x", "revision": 0}, format="json"
    )
    assert problem.status_code == 422
    body = {"answer": "declined", "text": "Too rare.", "revision": 0}
    answered = anna.client.post(f"{address}/check", body, format="json").json()
    assert (answered["check_answer"], answered["check_text"], answered["check_by"]) == (
        "declined", "Too rare.", anna.user.username,
    )  # fmt: skip
    assert anna.client.get(INCIDENTS, {"asks_for_check": "true"}).json()["results"] == []
    assert len(anna.client.get(INCIDENTS, {"asks_for_check": "false"}).json()["results"]) == 2


def test_filters(anna: Caller) -> None:
    flat, rowless = make_incident(anna.actor), make_incident(anna.actor, symptom=None)

    def numbers(**query: str) -> list[int]:
        return [row["number"] for row in anna.client.get(INCIDENTS, query).json()["results"]]

    assert numbers() == [rowless.number, flat.number]
    assert (numbers(symptom="loss-flat"), numbers(symptom="")) == ([flat.number], [rowless.number])
    assert (numbers(state="open"), numbers(state="resolved")) == ([rowless.number, flat.number], [])
    assert_problem(anna.client.get(INCIDENTS, {"state": "lost"}), 400, "query-invalid")
    assert_problem(anna.client.get(f"{INCIDENTS}/999"), 404, "incident-not-found")
    assert_problem(anna.client.get(f"{INCIDENTS}/{10**30}"), 404, "incident-not-found")


def test_faults_come_together_as_a_problem(anna: Caller) -> None:
    body = {"title": "x", "symptom": "nonsense", "training_run": "00000000-0000-0000-0000-000000000000"}
    problem = assert_problem(anna.client.post(INCIDENTS, body, format="json"), 422, "incident-invalid")
    assert [fault["where"] for fault in problem["errors"]] == ["/symptom", "/training_run"]
    assert anna.client.post(INCIDENTS, {"title": "x", "colour": 1}, format="json").status_code == 422


def test_the_quarter(anna: Caller) -> None:
    make_incident(anna.actor, title="| <b>")
    now = timezone.now()
    document = anna.client.get(f"{INCIDENTS}/quarterly").json()
    assert document["quarter"] == f"{now.year}Q{(now.month - 1) // 3 + 1}"
    assert (document["num_opened"], document["by_symptom"][0]["code"]) == (1, "loss-flat")
    assert [row["code"] for row in document["new_symptoms"]] == ["loss-flat"]
    report = anna.client.get(f"{INCIDENTS}/quarterly/report")
    assert report["Content-Type"] == "text/markdown; charset=utf-8"
    assert "\\| &lt;b&gt;" in report.content.decode()
    past = anna.client.get(f"{INCIDENTS}/quarterly", {"quarter": "2020Q1"}).json()
    assert (past["num_opened"], past["begins_at"], past["ends_at"]) == (
        0,
        "2020-01-01T00:00:00Z",
        "2020-04-01T00:00:00Z",
    )
    assert_problem(anna.client.get(f"{INCIDENTS}/quarterly", {"quarter": "2026Q5"}), 422, "quarter-invalid")


def test_rights(anna: Caller) -> None:
    address = f"{INCIDENTS}/{make_incident(anna.actor).number}"
    reader, submitter = make_caller("read").client, make_caller("submit").client
    assert reader.get(address).status_code == 200
    for path in ("", "/entries", "/investigate", "/resolve", "/dismiss", "/check"):
        target = INCIDENTS if not path else f"{address}{path}"
        assert_problem(reader.post(target, {}, format="json"), 403, "scope-missing")
    for path in ("/resolve", "/dismiss", "/check"):
        assert_problem(submitter.post(f"{address}{path}", {}, format="json"), 403, "scope-missing")
    assert submitter.post(f"{address}/entries", {"text": "x"}, format="json").status_code == 201
    assert make_caller("pull").client.get(address).status_code == 403
