"""Jobs over REST: states, the story from a sequence number on, cancelling, and who may."""

import uuid
from typing import Any

import pytest
from django.utils import timezone

from registry.choices import JobEventType
from registry.models import Job
from registry.services.actors import SYSTEM
from registry.services.jobs import JobEventRecord, claim_job, enqueue_job, record_events
from tests.fixtures.registry import make_caller

pytestmark = pytest.mark.django_db


def enqueue(number: int = 0, kind: str = "merge") -> Job:
    return enqueue_job(
        kind=kind,
        inputs={},
        config={"number": number},
        code_version=f"{kind}@1",
        subject="tickets@1",
        actor=SYSTEM,
    )


def test_a_job_is_shown_as_the_contract_says() -> None:
    job = enqueue()
    claimed = claim_job(job_id=job.pk, worker="cpu@m")
    assert claimed is not None
    body = make_caller("read").client.get(f"/api/v1/jobs/{job.pk}").json()
    expected: dict[str, Any] = {
        "id": str(job.pk),
        "kind": "merge",
        "state": "running",
        "queue": "cpu",
        "attempt": 1,
        "fraction": 0.0,
        "message": "Taken by cpu@m.",
        "failure": None,
        "finished_at": None,
        "subject": "tickets@1",
    }
    assert expected.items() <= body.items()
    assert body["duration_seconds"] >= 0.0
    assert {"created_at", "started_at"} <= body.keys()


def test_lists_are_filtered_and_newest_first() -> None:
    first, second, other = enqueue(1), enqueue(2), enqueue(3, kind="train")
    client = make_caller("read").client
    ids = [row["id"] for row in client.get("/api/v1/jobs?kind=merge&state=queued").json()["results"]]
    assert ids == [str(second.pk), str(first.pk)]
    assert client.get("/api/v1/jobs").json()["results"][0]["id"] == str(other.pk)
    refused = client.get("/api/v1/jobs?kind=bake")
    assert (refused.status_code, refused.json()["code"]) == (400, "query-invalid")


def test_the_story_goes_on_from_a_sequence_number() -> None:
    job = enqueue()
    claimed = claim_job(job_id=job.pk, worker="cpu@m")
    assert claimed is not None
    lines = [
        JobEventRecord(at=timezone.now(), type=JobEventType.LOG, level="info", message=f"line {number}")
        for number in range(3)
    ]
    record_events(claim=claimed, events=lines)
    client = make_caller("read").client
    rows = client.get(f"/api/v1/jobs/{job.pk}/events?after=2").json()["results"]
    assert [(row["sequence"], row["message"]) for row in rows] == [(3, "line 1"), (4, "line 2")]
    assert rows[0].keys() >= {"at", "type", "level", "fraction"}
    assert client.get(f"/api/v1/jobs/{job.pk}/events?after=x").status_code == 400


def test_cancelling_needs_the_scope_submit() -> None:
    job = enqueue()
    refused = make_caller("read").client.post(f"/api/v1/jobs/{job.pk}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (403, "scope-missing")
    limited = make_caller("submit", adapters=["mine"]).client.post(f"/api/v1/jobs/{job.pk}/cancel")
    assert (limited.status_code, limited.json()["code"]) == (403, "adapter-out-of-scope")
    done = make_caller("submit").client.post(f"/api/v1/jobs/{job.pk}/cancel")
    assert (done.status_code, done.json()["state"]) == (200, "cancelled")


def test_unknown_jobs_are_not_found() -> None:
    client = make_caller("read", "submit").client
    for path, method in (("", client.get), ("/events", client.get), ("/cancel", client.post)):
        answer = method(f"/api/v1/jobs/{uuid.uuid4()}{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "job-not-found")
