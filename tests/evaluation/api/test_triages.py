import pytest

from evaluation.models import Triage
from tests.fixtures.registry import Caller, assert_problem, make_base_model, make_caller
from tests.fixtures.triage import make_sorted_triage, sample_line

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

BODY = {
    "name": "tickets",
    "base_model": "tiny",
    "samples": [sample_line(number) for number in range(1, 13)],
    "prompts": [{"name": "short", "system_prompt": "Answer in JSON."}],
}


@pytest.fixture
def anna() -> Caller:
    make_base_model()
    return make_caller("evaluate", "review", "read")


def test_create_list_and_show(anna: Caller) -> None:
    answer = anna.client.post("/api/v1/triages", BODY, format="json")
    assert answer.status_code == 201, answer.content
    row = answer.json()
    assert (row["state"], row["is_final"], row["verdict"], row["current_job"]["kind"]) == (
        "queued", False, None, "triage",
    )  # fmt: skip
    assert row["links"]["page"].endswith(f"/admin/evaluation/triage/{row['id']}/report/")
    listed = anna.client.get("/api/v1/triages", {"state": "queued"}).json()["results"]
    assert [item["id"] for item in listed] == [row["id"]] and "config" not in listed[0]
    assert anna.client.get(f"/api/v1/triages/{row['id']}").json()["config"]["max_tokens"] == 512
    assert anna.client.post(f"/api/v1/triages/{row['id']}/cancel").json()["state"] == "cancelled"


def test_faults_come_together_as_a_problem(anna: Caller) -> None:
    body = {**BODY, "base_model": "none", "samples": [{"id": "x"}]}
    problem = assert_problem(anna.client.post("/api/v1/triages", body, format="json"), 422, "triage-invalid")
    assert {fault["code"] for fault in problem["errors"]} >= {"missing-messages"}
    assert len(problem["errors"]) == 2
    unknown = anna.client.post("/api/v1/triages", {**BODY, "colour": 1}, format="json")
    assert unknown.status_code == 422
    too_many = {**BODY, "samples": [sample_line(number) for number in range(1, 202)]}
    problem = assert_problem(
        anna.client.post("/api/v1/triages", too_many, format="json"), 422, "triage-invalid"
    )
    assert [fault["code"] for fault in problem["errors"]] == ["too-many-samples"]


def test_confirming_needs_the_etag_that_was_seen(anna: Caller) -> None:
    triage = make_sorted_triage(anna.actor, ["format"] * 8 + [None] * 4)
    base = f"/api/v1/triages/{triage.pk}"
    items = anna.client.get(f"{base}/items", {"outcome": "failed"}).json()["results"]
    assert len(items) == 8 and items[0]["details"]["sorting"]["signals"][0]["code"] == "planted"
    address, body = f"{base}/items/1", {"kind": "style", "note": "too long"}
    assert_problem(anna.client.put(address, body, format="json"), 428, "precondition-required")
    answer = anna.client.put(address, body, format="json", headers={"If-Match": '"r0"'})
    assert (answer.status_code, answer.headers["ETag"]) == (200, '"r1"')
    assert (answer.json()["confirmed_kind"], answer.json()["note"]) == ("style", "too long")
    stale = anna.client.put(address, body, format="json", headers={"If-Match": '"r0"'})
    assert_problem(stale, 412, "triage-item-changed")
    assert anna.client.put(address, {"kind": "format", "revision": 1}, format="json").status_code == 200
    problem = anna.client.put(address, {"kind": "magic", "revision": 2}, format="json")
    assert_problem(problem, 422, "triage-word-invalid")
    assert_problem(anna.client.get(f"{base}/items/99"), 404, "triage-item-not-found")


def test_close_stores_the_verdict(anna: Caller) -> None:
    triage = make_sorted_triage(anna.actor, ["unknown-fact"] * 6 + [None] * 6)
    base = f"/api/v1/triages/{triage.pk}"
    row = anna.client.get(base).json()
    assert (row["verdict"]["advice"], row["verdict"]["is_preliminary"], row["num_open"]) == (
        "retrieval",
        True,
        6,
    )
    assert_problem(anna.client.post(f"{base}/close"), 409, "triage-unconfirmed")
    answer = anna.client.post(f"{base}/close", {"allow_unconfirmed": True}, format="json").json()
    assert (answer["state"], answer["closed_by"]) == ("closed", anna.user.username)
    assert Triage.objects.get().verdict == answer["verdict"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("post", ""), ("post", "/{id}/cancel"), ("put", "/{id}/items/1"), ("post", "/{id}/close")],
)
def test_reading_is_no_right_to_change(anna: Caller, method: str, path: str) -> None:
    triage = make_sorted_triage(anna.actor, ["format"] * 2)
    reader = make_caller("read")
    answer = getattr(reader.client, method)(f"/api/v1/triages{path.format(id=triage.pk)}", {}, format="json")
    assert_problem(answer, 403, "scope-missing")
    assert reader.client.get(f"/api/v1/triages/{triage.pk}").status_code == 200
