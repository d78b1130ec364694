"""Raw data and preparations over HTTP."""

import json
import uuid
from typing import Any

import pytest

from registry.models import Job
from tests.fixtures.preparations import CSV, finish_preparation, make_raw, prepared_files
from tests.fixtures.registry import Caller, assert_problem, make_caller, upload_files
from training.models import DataPreparation, RawData
from training.services.preparations import reconcile_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

RAW_DATA, PREPARATIONS = "/api/v1/raw-data", "/api/v1/preparations"
BODY: dict[str, Any] = {"name": "tickets", "raw_data": "log", "recipe": {"split": {"holdout_fraction": 0.1}}}


@pytest.fixture
def caller() -> Caller:
    return make_caller("evaluate")


def test_upload_and_name(caller: Caller) -> None:
    digest = upload_files(caller.client, "raw_data", {"a/tickets.csv": CSV, "b.csv": CSV})
    body = {"name": "log", "artifact": digest}
    created = caller.client.post(RAW_DATA, body, format="json")
    assert created.status_code == 201, created.content
    row = created.json()
    assert (row["name"], row["artifact"], row["num_files"], row["size_bytes"]) == (
        "log",
        digest,
        2,
        2 * len(CSV),
    )
    again = caller.client.post(RAW_DATA, body, format="json")
    assert (again.status_code, again.json()) == (200, row)
    assert caller.client.get(RAW_DATA).json()["results"] == [row]
    assert caller.client.get(f"{RAW_DATA}/log").json() == row
    assert caller.client.get(f"{RAW_DATA}/{row['id']}").json() == row
    assert_problem(caller.client.get(f"{RAW_DATA}/lgo"), 404, "raw-data-not-found")


def test_faults_of_raw_data(caller: Caller) -> None:
    answer = caller.client.post(RAW_DATA, {"name": "A b", "file": 1}, format="json")
    problem = assert_problem(answer, 422, "validation-failed")
    assert {fault["where"] for fault in problem["errors"]} == {"/name", "/artifact", "/file"}
    unknown = {"name": "log", "artifact": "a" * 64}
    problem = assert_problem(caller.client.post(RAW_DATA, unknown, format="json"), 422, "raw-data-invalid")
    assert [fault["where"] for fault in problem["errors"]] == ["/artifact"]


def test_create_look_and_results(caller: Caller) -> None:
    make_raw("log")
    created = caller.client.post(PREPARATIONS, BODY, format="json")
    assert created.status_code == 201, created.content
    row = created.json()
    assert (row["state"], row["is_final"], row["raw_data"]["name"], row["sets"]) == (
        "queued",
        False,
        "log",
        [],
    )
    assert row["current_job"]["kind"] == "prepare"
    # Defaults are spelled out.
    assert row["recipe"]["role"] == "train"
    assert_problem(caller.client.get(row["links"]["report"]), 404, "preparation-without-report")
    finish_preparation(DataPreparation.objects.get())
    reconcile_all()
    done = caller.client.get(row["links"]["self"]).json()
    assert (done["state"], done["is_final"], done["current_job"]) == ("succeeded", True, None)
    assert [(it["role"], it["dataset_version"], it["num_examples"]) for it in done["sets"]] == [
        ("train", "tickets@1", 8),
        ("holdout", "tickets-holdout@1", 2),
    ]
    report = caller.client.get(done["links"]["report"])
    assert report["Content-Type"] == "application/json"
    assert json.loads(report.content)["code_version"] == "prepare@1"
    card = caller.client.get(done["links"]["card"])
    assert card["Content-Type"] == "text/markdown; charset=utf-8"
    assert card["X-Content-Type-Options"] == "nosniff" and "sandbox" in card["Content-Security-Policy"]
    assert card.content == prepared_files()["card.md"]
    assert [it["id"] for it in caller.client.get(PREPARATIONS).json()["results"]] == [row["id"]]


def test_faults(caller: Caller) -> None:
    problem = assert_problem(
        caller.client.post(PREPARATIONS, {"nam": 1}, format="json"), 422, "validation-failed"
    )
    assert {fault["where"] for fault in problem["errors"]} == {"/name", "/raw_data", "/nam"}
    bad = BODY | {"recipe": {"clean": [{"step": "drop_duplicates", "threshold": 7}]}, "general": "x@1"}
    problem = assert_problem(caller.client.post(PREPARATIONS, bad, format="json"), 422, "preparation-invalid")
    assert [fault["where"] for fault in problem["errors"]] == [
        "/raw_data",
        "/recipe/clean/0/threshold",
        "/general",
    ]
    for path in ("", "/report", "/card"):
        answer = caller.client.get(f"{PREPARATIONS}/{uuid.uuid4()}{path}")
        assert_problem(answer, 404, "preparation-not-found")


def test_cancel_and_retry(caller: Caller) -> None:
    make_raw("log")
    row = caller.client.post(PREPARATIONS, BODY, format="json").json()
    assert_problem(caller.client.post(f"{row['links']['self']}/retry"), 409, "preparation-not-retryable")
    assert caller.client.post(f"{row['links']['self']}/cancel").json()["state"] == "cancelled"
    assert_problem(caller.client.post(f"{row['links']['self']}/cancel"), 409, "preparation-final")
    assert caller.client.post(f"{row['links']['self']}/retry").json()["state"] == "queued"
    assert Job.objects.count() == 2


def test_a_repeated_request_makes_one_preparation(caller: Caller) -> None:
    make_raw("log")
    headers = {"Idempotency-Key": "k"}
    first, second = (caller.client.post(PREPARATIONS, BODY, format="json", headers=headers) for _ in range(2))
    assert first.json() == second.json()
    assert DataPreparation.objects.count() == 1


def test_scopes() -> None:
    make_raw("log")
    reader, reviewer = make_caller("read").client, make_caller("review").client
    assert reader.get(RAW_DATA).status_code == reader.get(PREPARATIONS).status_code == 200
    for url in (RAW_DATA, PREPARATIONS):
        assert_problem(reader.post(url, BODY, format="json"), 403, "scope-missing")
        assert_problem(reviewer.get(url), 403, "scope-missing")
    assert RawData.objects.count() == 1
