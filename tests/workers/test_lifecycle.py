"""One attempt, from claim to end, on real child processes."""

import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from config.stack.linux import read_start_time
from registry.choices import JobEventType, JobState
from registry.errors import StoreFull
from registry.models import Job, JobAttempt
from registry.services import jobs
from registry.services.actors import SYSTEM
from tests.workers.job_folders import enqueue_check
from workers import lifecycle
from workers.child import ChildProcess
from workers.job.result import JobResult, read_result

pytestmark = pytest.mark.django_db(transaction=True)
WORKER = "cpu@machine"
Act = Callable[[ChildProcess], object]


def run(job: Job, should_stop: Callable[[], bool] = lambda: False) -> str | None:
    return lifecycle.run_job(job_id=job.pk, worker=WORKER, should_stop=should_stop)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[ChildProcess]:
    """Children that are stopped as soon as they are there; the list collects them."""
    children: list[ChildProcess] = []

    class HeldChild(ChildProcess):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            os.kill(self.pid, signal.SIGSTOP)
            children.append(self)

    monkeypatch.setattr(lifecycle, "ChildProcess", HeldChild)
    return children


def act_once(children: list[ChildProcess], act: Act) -> Callable[[], bool]:
    """Returns a `should_stop` that acts on the child at the first turn and never asks to stop."""
    done: list[bool] = []

    def should_stop() -> bool:
        if not done:
            done.append(True)
            act(children[0])
        return False

    return should_stop


def test_a_sound_adapter_is_checked(tmp_path: Path) -> None:
    job = enqueue_check(tmp_path)
    assert run(job) == JobState.SUCCEEDED
    job.refresh_from_db()
    assert job.values["ok"] is True, job.values["findings"]
    assert (job.fraction, job.message, job.output_artifact) == (1.0, "Succeeded.", None)
    types = list(job.events.values_list("type", flat=True))
    assert types[0] == types[-1] == JobEventType.STATE
    assert JobEventType.PROGRESS in types
    workdir = Path(JobAttempt.objects.get().workdir)
    result = read_result(workdir)
    assert result is not None and dict(result.values) == job.values
    assert run(job) is None, "an ended job is not there to be taken"


def test_a_faulty_adapter_is_a_succeeded_check(tmp_path: Path) -> None:
    job = enqueue_check(tmp_path, adapter={"use_dora": True})
    assert run(job) == JobState.SUCCEEDED
    job.refresh_from_db()
    assert job.values["ok"] is False


def test_cancelling_stops_the_child(tmp_path: Path, held: list[ChildProcess]) -> None:
    job = enqueue_check(tmp_path)
    state = run(job, act_once(held, lambda child: jobs.request_cancel(job=job, actor=SYSTEM)))
    assert state == JobState.CANCELLED
    assert read_start_time(held[0].pid) is None
    assert JobAttempt.objects.get().outcome == "cancelled"


def test_the_time_limit_stops_the_child(tmp_path: Path, held: list[ChildProcess]) -> None:
    job = enqueue_check(tmp_path, time_limit_seconds=1)
    assert run(job) == JobState.FAILED
    job.refresh_from_db()
    assert job.failure is not None
    assert (job.failure["failure_class"], job.failure["code"]) == ("internal", "time-limit-exceeded")
    assert read_start_time(held[0].pid) is None


def test_a_worker_that_shuts_down_puts_the_job_back(tmp_path: Path, held: list[ChildProcess]) -> None:
    job = enqueue_check(tmp_path, max_attempts=1)
    assert run(job, lambda: True) == JobState.QUEUED
    assert read_start_time(held[0].pid) is None
    assert JobAttempt.objects.get().outcome == "released"


def test_what_is_kept_stays_for_the_next_attempt_and_goes_with_the_job(
    tmp_path: Path, held: list[ChildProcess], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    job = enqueue_check(tmp_path)
    kept = Path(settings.WORK_ROOT) / str(job.pk) / "kept"
    assert run(job, lambda: True) == JobState.QUEUED
    assert kept.is_dir()
    (kept / "checkpoint").touch()
    seen: list[list[str]] = []

    class LookingChild(ChildProcess):
        def __init__(self, **options: Any) -> None:
            seen.append([path.name for path in options["kept"].iterdir()])
            super().__init__(**options)

    monkeypatch.setattr(lifecycle, "ChildProcess", LookingChild)
    assert run(job) == JobState.SUCCEEDED
    assert seen == [["checkpoint"]]
    assert not kept.exists()


def test_a_killed_child_is_tried_again_with_the_same_result(
    tmp_path: Path, held: list[ChildProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = enqueue_check(tmp_path)
    assert run(job, act_once(held, lambda child: os.kill(child.pid, signal.SIGKILL))) == JobState.QUEUED
    job.refresh_from_db()
    assert job.failure is not None
    assert (job.failure["failure_class"], job.failure["code"]) == ("infrastructure", "child-killed")
    monkeypatch.setattr(lifecycle, "ChildProcess", ChildProcess)
    assert run(job) == JobState.SUCCEEDED
    job.refresh_from_db()
    assert (job.attempt, job.failure, job.values["ok"]) == (2, None, True)


def test_a_crashed_child_is_a_failure_of_the_machine(tmp_path: Path, held: list[ChildProcess]) -> None:
    def crash(child: ChildProcess) -> None:
        os.kill(child.pid, signal.SIGSEGV)
        os.kill(child.pid, signal.SIGCONT)

    job = enqueue_check(tmp_path, max_attempts=1)
    assert run(job, act_once(held, crash)) == JobState.FAILED
    job.refresh_from_db()
    assert job.failure is not None
    assert (job.failure["failure_class"], job.failure["code"]) == ("infrastructure", "child-crashed")
    assert "SIGSEGV" in job.failure["message"]


def test_an_exit_without_result_is_our_fault(tmp_path: Path, held: list[ChildProcess]) -> None:
    def spoil(child: ChildProcess) -> None:
        workdir = Path(JobAttempt.objects.get().workdir)
        (workdir / "spec.json").write_text("{", encoding="utf-8")
        os.kill(child.pid, signal.SIGCONT)

    job = enqueue_check(tmp_path)
    assert run(job, act_once(held, spoil)) == JobState.FAILED
    job.refresh_from_db()
    assert job.failure is not None
    assert (job.failure["failure_class"], job.failure["code"]) == ("internal", "result-missing")
    assert "spec.json" in (Path(JobAttempt.objects.get().workdir) / "child.log").read_text()


def test_an_attempt_that_lost_its_claim_stops_and_changes_nothing(
    tmp_path: Path, held: list[ChildProcess]
) -> None:
    job = enqueue_check(tmp_path)
    assert run(job, act_once(held, lambda child: jobs.requeue_jobs_of_worker(worker=WORKER))) is None
    job.refresh_from_db()
    assert job.state == JobState.QUEUED
    assert read_start_time(held[0].pid) is None
    assert JobAttempt.objects.get().outcome == "lost"


@pytest.mark.parametrize(
    ("name", "error", "code"),
    [
        ("prepare_work_folder", OSError(errno.ENOSPC, "No space left on device"), "machine-error"),
        ("store_output", StoreFull("store-full"), "store-full"),
    ],
)
def test_a_full_disk_is_a_failure_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception, code: str
) -> None:
    def fail(**_: Any) -> JobResult:
        raise error

    job = enqueue_check(tmp_path)
    monkeypatch.setattr(lifecycle, name, fail)
    assert run(job) == JobState.QUEUED
    job.refresh_from_db()
    assert job.failure is not None
    assert (job.failure["failure_class"], job.failure["code"]) == ("infrastructure", code)


@pytest.mark.parametrize(
    ("inputs", "failure_class", "code"),
    [
        ({"adapter": {"artifact": "0" * 64}}, "infrastructure", "artifact-not-found"),
        ({"adapter": {"what": 1}}, "internal", "job-inputs-malformed"),
        ({"../adapter": {"artifact": "0" * 64}}, "internal", "job-inputs-malformed"),
        ({"adapter": {"inline": {"../../x": 1}}}, "internal", "job-inputs-malformed"),
    ],
)
def test_inputs_that_cannot_be_laid_out_end_the_attempt(
    tmp_path: Path, inputs: dict[str, Any], failure_class: str, code: str
) -> None:
    job = enqueue_check(tmp_path, inputs=inputs, max_attempts=1)
    assert run(job) == JobState.FAILED
    job.refresh_from_db()
    assert job.failure is not None
    assert (job.failure["failure_class"], job.failure["code"]) == (failure_class, code)
    assert not (tmp_path / "x").exists()


def test_a_fault_of_the_worker_ends_the_job_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("a fault")

    job = enqueue_check(tmp_path)
    monkeypatch.setattr(lifecycle, "prepare_work_folder", fail)
    with pytest.raises(RuntimeError, match="a fault"):
        run(job)
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.failure is not None and job.failure["code"] == "worker-fault"


def test_a_database_that_is_away_for_a_while_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_failures = 0

    def fail_twice(**arguments: Any) -> Job:
        nonlocal num_failures
        num_failures += 1
        if num_failures <= 2:
            raise OperationalError("database is locked")
        return jobs.complete_job(**arguments)

    monkeypatch.setattr(lifecycle, "complete_job", fail_twice)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert run(enqueue_check(tmp_path)) == JobState.SUCCEEDED
    assert num_failures == 3
