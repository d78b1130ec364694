import json

import pytest

from tests.client.cli.conftest import Assay
from tests.client.fake_server import FakeServer


@pytest.fixture
def job_id(fake: FakeServer) -> str:
    for name, state in (("job-1", "running"), ("job-2", "failed")):
        failure = {"failure_class": "internal", "code": "bug", "message": "it broke", "details": []}
        fake.jobs[name] = {
            "id": name,
            "kind": "merge",
            "state": state,
            "queue": "cpu",
            "attempt": 1,
            "fraction": 0.25,
            "message": "layer\x1b[2J",
            "failure": failure if state == "failed" else None,
            "created_at": "2026-01-02T03:04:05Z",
            "duration_seconds": 12.34,
        }
    fake.events = [
        {
            "sequence": n,
            "at": f"T{n}",
            "type": "log",
            "level": "info",
            "message": f"line {n}",
            "fraction": None,
        }
        for n in range(5)
    ]
    return "job-2"


def test_list_reads_every_page(assay: Assay, job_id: str) -> None:
    text = assay("jobs", "list").stdout
    assert "job-1" in text
    assert "job-2" in text
    assert "layer\\x1b[2J" in text
    assert len(json.loads(assay("jobs", "list", "--json").stdout)) == 2


def test_show_tells_why_a_job_failed(assay: Assay, job_id: str) -> None:
    result = assay("jobs", "show", job_id)
    assert "took: 12.3 s" in result.stdout
    assert "error bug (internal fault): it broke" in result.stderr


def test_logs_are_read_to_the_last_page(assay: Assay, job_id: str) -> None:
    assert assay("jobs", "logs", job_id).stdout.splitlines() == [f"T{n} info line {n}" for n in range(5)]
    assert assay("jobs", "logs", job_id, "--follow").stdout.count("line") == 5


def test_cancel(fake: FakeServer, assay: Assay, job_id: str) -> None:
    assert assay("jobs", "cancel", job_id).exit_code == 0
    assert fake.sent("POST", "/jobs/job-2/cancel")
