"""The embedded stack as people run it: ready, killed in every place, stopped without a trace."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 90.0


class Stack:
    """One stack in a home folder of its own, on a free port."""

    def __init__(self, home: Path) -> None:
        self.home = home
        without = {"DATABASE_URL", "REDIS_URL", "ASSAY_URL", "ASSAY_TOKEN"}
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in without},
            "ASSAY_HOME": str(home),
            "ASSAY_PORT": "0",
            "ASSAY_JOB_HEARTBEAT_SECONDS": "0.3",
            "ASSAY_SCHEDULER_INTERVAL_SECONDS": "0.5",
            "DJANGO_SETTINGS_MODULE": "config.settings.embedded",
            "PYTHONPATH": str(ROOT),
        }

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )

    def up(self) -> subprocess.CompletedProcess[str]:
        done = self.command("config.stack", "up", "--detach")
        assert done.returncode == 0, done.stdout + self.logs()
        return done

    def stop(self) -> None:
        done = self.command("config.stack", "stop")
        assert done.returncode == 0, done.stdout + self.logs()

    def state(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.home / "run" / "stack.json").read_text())
        return value

    def pid(self, name: str) -> int:
        return int(self.state()["processes"][name]["pid"])

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        token = (self.home / "admin_token").read_text().strip()
        request = urllib.request.Request(  # noqa: S310 - the address is our own
            self.state()["url"] + path, headers={"Authorization": f"Bearer {token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def enqueue(self, number: int) -> str:
        done = self.command("tests.integration.enqueue_check", str(self.home / "made"), str(number))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def job(self, job_id: str) -> dict[str, Any]:
        return self.get(f"/api/v1/jobs/{job_id}")[1]

    def processes(self) -> dict[int, str]:
        """Everything alive whose command line or environment names this home."""
        needle = os.fsencode(self.home)
        found = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit() or int(folder.name) == os.getpid():
                continue
            try:
                command, environment = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            except OSError:
                continue
            if needle in command + environment:
                found[int(folder.name)] = command.replace(b"\0", b" ").decode(errors="replace")
        return found

    def logs(self) -> str:
        return "\n".join(
            f"== {path}\n{path.read_text()[-2000:]}" for path in (self.home / "log").glob("*.log")
        )


def wait_for(condition: Callable[[], Any], what: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Any:
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come about in {patience_seconds} s")


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
    needle = os.fsencode(f"{stack.home}/work/{job_id}")
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
