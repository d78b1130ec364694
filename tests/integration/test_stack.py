"""The embedded stack as people run it: ready, killed in every place, stopped without a trace."""

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.stack import PATIENCE_SECONDS, Stack, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def first_output() -> list[str]:
    return []


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, first_output: list[str]) -> Iterator[Stack]:
    home = tmp_path_factory.mktemp("home")
    running = Stack(home)
    first_output.append(running.up().stdout)
    yield running
    running.command("config.stack", "stop")
    for pid in running.processes():
        os.kill(pid, signal.SIGKILL)


def test_first_start_shows_secrets_once_and_keeps_them_from_others(
    stack: Stack, first_output: list[str]
) -> None:
    token = (stack.home / "admin_token").read_text().strip()
    assert token in first_output[0]
    assert re.search(r"admin, password \S{20}", first_output[0])
    assert (stack.home / "admin_token").stat().st_mode & 0o777 == 0o600
    assert stack.home.joinpath("run").stat().st_mode & 0o777 == 0o700
    assert token not in stack.logs()


def test_health_and_api_answer(stack: Stack) -> None:
    status, body = stack.get("/health/ready")
    assert (status, body["status"]) == (200, "ready")
    assert list(body["checks"]) == ["database", "broker", "store", "scheduler", "workers"]
    assert stack.get("/health/live") == (200, {"status": "live"})
    assert stack.get("/api/v1/whoami")[1]["user"] == "admin"


def test_a_second_start_is_refused_and_names_the_first(stack: Stack) -> None:
    done = stack.command("config.stack", "up")
    assert done.returncode == 1
    assert str(stack.state()["pid"]) in done.stdout


def test_a_job_whose_worker_is_killed_is_taken_up_again(stack: Stack) -> None:
    worker = stack.pid("worker-cpu")
    job_id, child = _catch_child_at_work(stack, first_number=0)
    os.kill(worker, signal.SIGKILL)
    os.kill(child, signal.SIGCONT)
    wait_for(lambda: child not in stack.processes(), "the end of the orphaned job process")
    job = wait_for(lambda: (job := stack.job(job_id))["state"] == "succeeded" and job, "the second attempt")
    assert job["attempt"] == 2
    assert stack.pid("worker-cpu") != worker
    wait_for(lambda: stack.get("/health/ready")[0] == 200, "readiness after the kill")


def test_a_killed_broker_loses_no_job(stack: Stack) -> None:
    os.kill(stack.pid("broker"), signal.SIGKILL)
    job_id = stack.enqueue(100)
    wait_for(lambda: stack.job(job_id)["state"] == "succeeded", "the job")


def test_a_killed_supervisor_takes_all_down_and_a_new_start_goes_on(stack: Stack) -> None:
    state = stack.state()
    os.kill(state["pid"], signal.SIGKILL)
    wait_for(lambda: not stack.processes(), "the end of all processes", patience_seconds=10)
    job_id = stack.enqueue(200)
    done = stack.up()
    assert "password" not in done.stdout and "token" not in done.stdout, "secrets are shown once"
    wait_for(lambda: stack.job(job_id)["state"] == "succeeded", "the job that waited")


def test_stopping_in_the_middle_of_a_job_leaves_no_process_and_puts_it_back(stack: Stack) -> None:
    job_id, _ = _catch_child_at_work(stack, first_number=300)
    stack.stop()
    assert stack.processes() == {}
    assert stack.command("config.stack", "status").returncode == 1
    stack.up()
    job = wait_for(lambda: (job := stack.job(job_id))["state"] == "succeeded" and job, "the second attempt")
    assert job["attempt"] == 2
    events = stack.get(f"/api/v1/jobs/{job_id}/events")[1]["results"]
    assert any("shutting down" in event["message"] for event in events)
    stack.stop()
    assert stack.processes() == {}

    replay = stack.command("workers.job", str(stack.home / "work" / job_id / "attempt-2"))
    assert (replay.returncode, "agrees with" in replay.stdout) == (0, True), "repeated with the server off"


def _catch_child_at_work(stack: Stack, *, first_number: int) -> tuple[str, int]:
    """Puts a job in and stops its process as soon as it is there; returns the job's id and the process."""
    for number in range(first_number, first_number + 5):
        worker = stack.pid("worker-cpu")
        os.kill(worker, signal.SIGSTOP)
        job_id = stack.enqueue(number)
        os.kill(worker, signal.SIGCONT)
        child = _stop_child(stack, job_id)
        if child is not None:
            return job_id, child
    raise AssertionError("no job process was caught at work")


def _stop_child(stack: Stack, job_id: str) -> int | None:
    needle = os.fsencode(stack.home / "work" / job_id)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                is_child = needle in path.read_bytes()
            except OSError:
                continue
            if is_child:
                pid = int(path.parent.name)
                os.kill(pid, signal.SIGSTOP)
                # It may have written its result already.
                return None if list((stack.home / "work" / job_id).glob("*/result.json")) else pid
    return None
