"""Training runs over HTTP."""

import uuid
from typing import Any

import pytest
from django.utils import timezone

from registry.models import Job
from registry.services.jobs import JobEventRecord, claim_job, record_events
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.registry import assert_problem, make_base_model, make_caller
from training.services.runs import reconcile_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

URL = "/api/v1/training-runs"
BODY: dict[str, Any] = {"name": "lora", "base_model": "tiny", "datasets": ["tickets-train@1"], "config": {}}


@pytest.fixture(autouse=True)
def inputs(store: Any) -> None:
    make_base_model()
    make_dataset("tickets-train", "train", num=3)


def test_create_look_and_cancel() -> None:
    client = make_caller("submit").client
    created = client.post(URL, BODY, format="json")
    assert created.status_code == 201, created.content
    run = created.json()
    assert (run["state"], run["artifact"], run["datasets"], run["holdout"]) == (
        "queued",
        None,
        ["tickets-train@1"],
        None,
    )
    assert run["current_job"]["kind"] == "train"
    assert run["config"]["training"]["num_epochs"] == 2.0

    claim = claim_job(job_id=Job.objects.get().pk, worker="w")
    assert claim is not None
    event = JobEventRecord(at=timezone.now(), type="metric", step=1, values={"loss": 2.5})
    record_events(claim=claim, events=[event])
    reconcile_all()
    assert client.get(run["metrics_url"]).json() == {"results": {"loss": [{"step": 1, "value": 2.5}]}}
    assert client.get(f"{URL}/{run['id']}").json()["state"] == "running"
    assert [it["id"] for it in client.get(URL).json()["results"]] == [run["id"]]
    assert client.post(f"{URL}/{run['id']}/cancel").json()["state"] == "cancelled"
    assert_problem(client.post(f"{URL}/{run['id']}/cancel"), 409, "training-run-final")


def test_faults() -> None:
    client = make_caller("submit").client
    problem = assert_problem(client.post(URL, {"nam": 1}, format="json"), 422, "validation-failed")
    assert {fault["where"] for fault in problem["errors"]} == {"/name", "/base_model", "/datasets", "/nam"}
    bad = BODY | {"config": {"lora": {"r": 0}}}
    problem = assert_problem(client.post(URL, bad, format="json"), 422, "training-run-invalid")
    assert [fault["where"] for fault in problem["errors"]] == ["/config/lora/r"]
    assert_problem(client.get(f"{URL}/{uuid.uuid4()}"), 404, "training-run-not-found")
    assert_problem(make_caller("read").client.post(URL, BODY, format="json"), 403, "scope-missing")
