"""Health: alive without asking anybody, ready only when every part is."""

from pathlib import Path
from typing import Any

import pytest
import redis
from django.test import Client

from config.health import checks
from config.presence import Presence

WORKERS = [Presence(role="worker", name=f"{queue}@m", queues=(queue,)) for queue in ("cpu", "accelerator")]
SCHEDULER = Presence(role="scheduler", name="scheduler@m")


class AnsweringRedis:
    def ping(self) -> bool:
        return True

    def close(self) -> None:
        return None


@pytest.fixture
def _all_well(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    settings.ARTIFACT_STORE = f"file://{tmp_path / 'artifacts'}"
    monkeypatch.setattr(checks, "connect_redis", AnsweringRedis)
    monkeypatch.setattr(checks, "list_present", lambda: [*WORKERS, SCHEDULER])


def test_live_needs_no_database(client: Client) -> None:
    assert client.get("/health/live").json() == {"status": "live"}


@pytest.mark.django_db
@pytest.mark.usefixtures("_all_well")
def test_ready_when_every_part_is(client: Client) -> None:
    response = client.get("/health/ready")
    assert response.status_code == 200, response.json()
    assert response.json()["status"] == "ready"
    assert client.post("/health/ready").status_code == 405


@pytest.mark.django_db
@pytest.mark.usefixtures("_all_well")
@pytest.mark.parametrize(
    ("present", "failed"),
    [
        ([*WORKERS], {"scheduler"}),
        ([WORKERS[0], SCHEDULER], {"workers"}),
        ([], {"scheduler", "workers"}),
    ],
)
def test_not_ready_without_a_worker_for_every_queue_and_a_scheduler(
    client: Client, monkeypatch: pytest.MonkeyPatch, present: list[Presence], failed: set[str]
) -> None:
    monkeypatch.setattr(checks, "list_present", lambda: present)
    response = client.get("/health/ready")
    body = response.json()
    assert (response.status_code, body["status"]) == (503, "not-ready")
    assert {name for name, check in body["checks"].items() if not check["ok"]} == failed


@pytest.mark.django_db
@pytest.mark.usefixtures("_all_well")
def test_a_silent_broker_shows_without_its_address(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise redis.ConnectionError("/secret/path/redis.sock does not answer")

    monkeypatch.setattr(checks, "connect_redis", fail)
    monkeypatch.setattr(checks, "list_present", fail)
    response = client.get("/health/ready")
    failed = {name for name, check in response.json()["checks"].items() if not check["ok"]}
    assert failed == {"broker", "scheduler", "workers"}
    assert "secret" not in response.content.decode()
