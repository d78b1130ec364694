"""Jobs: every illegal change of state, fencing, retries, cancellation, recovery, lost messages."""

import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from config.celery import app
from registry.choices import FINAL_JOB_STATES, JOB_TRANSITIONS, JobEventType, JobState, TokenScope
from registry.errors import IllegalTransition, NotFoundError, ScopeError
from registry.models import AuditEvent, Job, JobAttempt
from registry.services import jobs
from registry.services.actors import SYSTEM, Actor
from registry.services.jobs import queueing
from registry.services.jobs.records import ClaimedJob, ClaimLost, JobEventRecord, storable_json
from registry.services.jobs.transitions import change_job_state

WORKER = "cpu@machine"
Sent = list[tuple[str, str]]


def enqueue(**changes: Any) -> Job:
    request: dict[str, Any] = {
        "kind": "merge",
        "inputs": {"adapter": {"artifact": "a" * 64}},
        "config": {"number": 1},
        "code_version": "merge@1",
        "subject": "tickets@1",
        "actor": SYSTEM,
    }
    return jobs.enqueue_job(**request | changes)


def claim(job: Job) -> ClaimedJob:
    claimed = jobs.claim_job(job_id=job.pk, worker=WORKER)
    assert claimed is not None
    return claimed


def actor(*scopes: str, adapter_names: frozenset[str] | None = None) -> Actor:
    return Actor(name="someone", user=None, token=None, scopes=frozenset(scopes), adapter_names=adapter_names)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Collects (job id, queue) of the messages instead of sending them."""
    messages: Sent = []

    def send(name: str, *, args: list[str], queue: str, **_: Any) -> None:
        assert name == "workers.run_job"
        messages.append((args[0], queue))

    monkeypatch.setattr(app, "send_task", send)
    return messages


@pytest.mark.django_db
@pytest.mark.parametrize("from_state", JobState.values)
@pytest.mark.parametrize("to_state", JobState.values)
def test_only_changes_in_the_table_are_made(from_state: str, to_state: str) -> None:
    job = enqueue()
    Job.objects.filter(pk=job.pk).update(state=from_state)
    arguments: dict[str, Any] = {
        "job_id": job.pk,
        "from_state": from_state,
        "to_state": to_state,
        "actor": SYSTEM,
        "message": "",
    }
    if to_state in JOB_TRANSITIONS[from_state]:
        changed = change_job_state(**arguments)
        assert changed is not None and changed.state == to_state
    else:
        with pytest.raises(IllegalTransition):
            change_job_state(**arguments)
        job.refresh_from_db()
        assert job.state == from_state


@pytest.mark.django_db
def test_change_of_state_leaves_audit_row_and_event() -> None:
    job = enqueue()
    claim(job)
    actions = list(
        AuditEvent.objects.filter(object_type="registry.job").order_by("id").values_list("action", flat=True)
    )
    assert actions == ["job.enqueue", "job.running"]
    assert list(job.events.values_list("sequence", "type", "attempt")) == [(1, JobEventType.STATE, 1)]


@pytest.mark.django_db
def test_enqueue_sends_after_commit_and_only_once(
    sent: Sent, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        first, second = enqueue(), enqueue(subject="another subject")
        other = enqueue(kind="evaluate")
    assert first == second
    assert sent == [(str(first.pk), "cpu"), (str(other.pk), "accelerator")]


@pytest.mark.django_db
def test_enqueue_returns_the_succeeded_job_but_not_a_failed_one(sent: Sent) -> None:
    job = enqueue()
    jobs.fail_job(claim=claim(job), failure_class="internal", code="x", message="m")
    again = enqueue()
    assert again != job
    jobs.complete_job(claim=claim(again), values={"a": 1}, output_artifact=None)
    assert enqueue() == again
    assert enqueue(config={"number": 2}) != again
    assert enqueue(code_version="merge@2") != again


@pytest.mark.django_db
def test_enqueue_survives_a_broker_that_is_down(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError("no broker")

    monkeypatch.setattr(app, "send_task", fail)
    with django_capture_on_commit_callbacks(execute=True):
        job = enqueue()
    job.refresh_from_db()
    assert job.state == JobState.QUEUED


@pytest.mark.django_db
def test_claim_gives_a_job_once_and_counts_attempts(sent: Sent) -> None:
    job = enqueue()
    first = claim(job)
    assert jobs.claim_job(job_id=job.pk, worker="other") is None
    assert jobs.claim_job(job_id=uuid.uuid4(), worker="other") is None
    assert first.attempt == 1
    assert first.inputs == job.inputs


@pytest.mark.django_db
def test_nothing_is_taken_from_a_lost_claim(sent: Sent) -> None:
    job = enqueue()
    old = claim(job)
    jobs.release_job(claim=old)
    new = claim(job)
    event = JobEventRecord(at=timezone.now(), type=JobEventType.LOG, message="late")
    late_calls: list[Callable[[], object]] = [
        lambda: jobs.record_events(claim=old, events=[event]),
        lambda: jobs.complete_job(claim=old, values={}, output_artifact=None),
        lambda: jobs.fail_job(claim=old, failure_class="user", code="x", message="m"),
        lambda: jobs.cancel_claimed_job(claim=old),
        lambda: jobs.release_job(claim=old),
    ]
    for call in late_calls:
        with pytest.raises(ClaimLost):
            call()
    assert not jobs.record_heartbeat(claim=old, fraction=0.9).is_owner
    job.refresh_from_db()
    assert (job.state, job.claim, job.fraction) == (JobState.RUNNING, new.claim, 0.0)
    assert not job.events.filter(message="late").exists()


@pytest.mark.django_db
def test_heartbeat_keeps_progress_within_bounds_and_tells_of_a_cancellation(sent: Sent) -> None:
    job = enqueue()
    claimed = claim(job)
    reply = jobs.record_heartbeat(claim=claimed, fraction=1.5, message="x" * 900)
    job.refresh_from_db()
    assert (reply.is_owner, reply.is_cancel_requested) == (True, False)
    assert (job.fraction, len(job.message)) == (1.0, 500)
    jobs.request_cancel(job=job, actor=SYSTEM)
    assert jobs.record_heartbeat(claim=claimed).is_cancel_requested
    assert jobs.cancel_claimed_job(claim=claimed).state == JobState.CANCELLED
    assert JobAttempt.objects.get().outcome == "cancelled"


@pytest.mark.django_db
def test_events_are_numbered_without_gaps_and_made_storable(sent: Sent) -> None:
    job = enqueue()
    claimed = claim(job)
    at = datetime(2030, 1, 2, tzinfo=UTC)
    events = [
        JobEventRecord(at=at, type=JobEventType.LOG, level="info", message="a\0b\ud800"),
        JobEventRecord(at=at, type=JobEventType.METRIC, step=3, values={"loss": float("nan")}),
    ]
    jobs.record_events(claim=claimed, events=events)
    jobs.record_events(claim=claimed, events=events[:1])
    stored = list(job.events.filter(sequence__gt=1))
    assert [event.sequence for event in stored] == [2, 3, 4]
    assert stored[0].message.startswith("a\ufffdb") and "\ud800" not in stored[0].message
    assert (stored[1].step, stored[1].values) == (3, {"loss": None})


@pytest.mark.django_db
@pytest.mark.parametrize("failure_class", ["user", "internal"])
def test_faults_of_users_and_programs_are_not_tried_again(failure_class: str, sent: Sent) -> None:
    job = jobs.fail_job(
        claim=claim(enqueue()), failure_class=failure_class, code="bad", message="why", details=[]
    )
    assert job.state == JobState.FAILED
    assert job.failure == {"failure_class": failure_class, "code": "bad", "message": "why", "details": []}
    assert job.finished_at is not None and job.claim is None


@pytest.mark.django_db
def test_infrastructure_failure_is_tried_again_until_attempts_are_spent(
    sent: Sent, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    job = enqueue(max_attempts=2)
    failure: dict[str, Any] = {"failure_class": "infrastructure", "code": "child-killed", "message": "killed"}
    with django_capture_on_commit_callbacks(execute=True):
        assert jobs.fail_job(claim=claim(job), **failure).state == JobState.QUEUED
    assert sent == [(str(job.pk), "cpu")]
    assert jobs.fail_job(claim=claim(job), **failure).state == JobState.FAILED
    assert list(job.attempts.values_list("number", "outcome", "failure_class")) == [
        (1, "failed", "infrastructure"),
        (2, "failed", "infrastructure"),
    ]


@pytest.mark.django_db
def test_released_attempts_cost_nothing(sent: Sent) -> None:
    job = enqueue(max_attempts=1)
    for _ in range(3):
        assert jobs.release_job(claim=claim(job)).state == JobState.QUEUED
    last = claim(job)
    assert last.attempt == 4
    assert jobs.complete_job(claim=last, values={}, output_artifact=None).state == JobState.SUCCEEDED
    assert list(job.attempts.values_list("outcome", flat=True)) == ["released"] * 3 + ["succeeded"]


@pytest.mark.django_db
def test_waiting_job_is_cancelled_at_once_and_an_ended_one_stays(sent: Sent) -> None:
    waiting, ended = enqueue(), enqueue(config={"number": 2})
    jobs.complete_job(claim=claim(ended), values={}, output_artifact=None)
    assert jobs.request_cancel(job=waiting, actor=SYSTEM).state == JobState.CANCELLED
    assert jobs.request_cancel(job=ended, actor=SYSTEM).state == JobState.SUCCEEDED
    assert {waiting.state, ended.state} <= FINAL_JOB_STATES | {JobState.QUEUED}


@pytest.mark.django_db
def test_cancel_needs_the_scope_and_a_token_for_all_adapters(sent: Sent) -> None:
    job = enqueue()
    with pytest.raises(ScopeError):
        jobs.cancel_job(job_id=job.pk, actor=actor(TokenScope.READ))
    with pytest.raises(ScopeError, match="named adapters"):
        jobs.cancel_job(job_id=job.pk, actor=actor(TokenScope.SUBMIT, adapter_names=frozenset({"a"})))
    with pytest.raises(NotFoundError):
        jobs.cancel_job(job_id=uuid.uuid4(), actor=actor(TokenScope.SUBMIT))
    assert jobs.cancel_job(job_id=job.pk, actor=actor(TokenScope.SUBMIT)).state == JobState.CANCELLED


@pytest.mark.django_db
def test_asking_for_the_work_again_withdraws_a_cancellation(sent: Sent) -> None:
    job = enqueue()
    claimed = claim(job)
    jobs.request_cancel(job=job, actor=SYSTEM)
    assert enqueue() == job
    assert not jobs.record_heartbeat(claim=claimed).is_cancel_requested


@pytest.mark.django_db
def test_jobs_without_heartbeat_are_taken_back(sent: Sent, settings: Any) -> None:
    settings.JOB_LAPSED_SECONDS = 30.0
    job, fresh = enqueue(), enqueue(config={"number": 2})
    lost = claim(job)
    claim(fresh)
    now = timezone.now()
    Job.objects.filter(pk=job.pk).update(heartbeat_at=now - timedelta(seconds=31))
    assert jobs.requeue_lapsed_jobs(now=now) == 1
    job.refresh_from_db()
    fresh.refresh_from_db()
    assert (job.state, fresh.state) == (JobState.QUEUED, JobState.RUNNING)
    assert JobAttempt.objects.get(claim=lost.claim).outcome == "lost"
    with pytest.raises(ClaimLost):
        jobs.complete_job(claim=lost, values={}, output_artifact=None)


@pytest.mark.django_db
def test_a_job_that_loses_every_worker_fails_in_the_end(sent: Sent) -> None:
    job = enqueue(max_attempts=2)
    for _ in range(2):
        claim(job)
        assert jobs.requeue_jobs_of_worker(worker=WORKER) == 1
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.failure is not None and job.failure["code"] == "worker-lost"
    assert jobs.requeue_jobs_of_worker(worker=WORKER) == 0


@pytest.mark.django_db
def test_a_cancelled_job_of_a_lost_worker_is_not_tried_again(sent: Sent) -> None:
    job = enqueue()
    claim(job)
    jobs.request_cancel(job=job, actor=SYSTEM)
    jobs.requeue_jobs_of_worker(worker=WORKER)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


@pytest.mark.django_db
def test_only_messages_that_are_missing_are_sent_again(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    old, young = enqueue(), enqueue(config={"number": 2})
    now = timezone.now()
    Job.objects.filter(pk=old.pk).update(enqueued_at=now - timedelta(seconds=31))
    monkeypatch.setattr(queueing, "_count_messages", lambda queue: 2)
    assert jobs.resend_waiting_jobs(now=now) == 0
    monkeypatch.setattr(queueing, "_count_messages", lambda queue: 1)
    assert jobs.resend_waiting_jobs(now=now) == 1
    assert sent == [(str(old.pk), "cpu")]
    assert jobs.resend_waiting_jobs(now=now) == 0, "the clock of the message starts anew"
    assert young.state == JobState.QUEUED


@pytest.mark.django_db(transaction=True)
def test_of_two_racing_workers_one_gets_the_job(sent: Sent) -> None:
    job = enqueue()
    results = _race(lambda number: jobs.claim_job(job_id=job.pk, worker=f"worker-{number}"), num_threads=4)
    won = [result for result in results if result is not None]
    assert len(won) == 1
    job.refresh_from_db()
    assert (job.attempt, job.claim, job.worker) == (1, won[0].claim, won[0].worker)


@pytest.mark.django_db
def test_hints_are_no_part_of_what_names_the_work(sent: Sent) -> None:
    job = enqueue(hints={"known": [1]})
    assert claim(job).hints == {"known": [1]}
    again = enqueue(hints={"known": [1, 2]})
    assert (again.pk, again.hints) == (job.pk, {"known": [1]})
    assert enqueue(config={"number": 2}).hints == {}


@pytest.mark.django_db(transaction=True)
def test_racing_requests_for_the_same_work_make_one_job(sent: Sent) -> None:
    results = _race(lambda number: enqueue(subject=f"request {number}"), num_threads=4)
    assert len({job.pk for job in results}) == 1
    assert Job.objects.count() == 1
    assert len(sent) == 1


@pytest.mark.django_db(transaction=True)
def test_racing_writers_of_events_share_no_number(sent: Sent) -> None:
    job = enqueue()
    claimed = claim(job)
    event = JobEventRecord(at=timezone.now(), type=JobEventType.LOG, message="line")
    _race(lambda _: jobs.record_events(claim=claimed, events=[event] * 5), num_threads=4)
    assert list(job.events.values_list("sequence", flat=True)) == list(range(1, 22))


def test_storable_json_keeps_what_json_can_say() -> None:
    value = {"a": [1, 2.5, None, True, "é"], "b": {"c": float("inf")}}
    assert storable_json(value) == {"a": [1, 2.5, None, True, "é"], "b": {"c": None}}


def test_states_changes_belong_to_a_transaction() -> None:
    assert not transaction.get_connection().in_atomic_block


def _race(call: Callable[[int], Any], *, num_threads: int) -> list[Any]:
    barrier = threading.Barrier(num_threads)
    results: list[Any] = [None] * num_threads
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait()
            results[number] = call(number)
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    return results
