"""The pipeline's state machine, with jobs ended by hand through the services that workers use."""

import threading
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from evaluation.errors import GateError
from evaluation.models import Decision, EvaluationRun, ExampleResult
from evaluation.selectors.runs import get_submission, state_of_submission
from evaluation.services import pipeline
from evaluation.services.baseline_starts import start_baseline
from evaluation.services.pipeline import Step, advance_all, advance_run, next_step, on_job_finished
from evaluation.services.policies import register_policy
from evaluation.services.submissions import (
    SubmissionRequest,
    cancel_submission,
    retry_submission,
    submit,
)
from registry.models import AdapterVersion, Job
from registry.services.actors import SYSTEM
from registry.services.jobs import claim_job, request_cancel
from tests.fixtures.evaluation import (
    baseline_rows,
    break_job,
    candidate_rows,
    finish_awaited,
    finish_check,
    finish_evaluation,
    finish_job,
    finish_merge,
    make_decided_run,
    make_suite,
)
from tests.fixtures.registry import make_version

pytestmark = pytest.mark.django_db

ERROR = {
    "code": "rank-mismatch",
    "severity": "error",
    "message": "lora_A has rank 4, not 8",
    "where": "q_proj",
    "remedy": None,
}


def submit_version(version: AdapterVersion, **changes: Any) -> EvaluationRun:
    values: dict[str, Any] = {
        "adapter_name": version.adapter.name,
        "artifact_digest": version.artifact_id,
        "base_model_name": version.base_model.name,
        "suite": "tickets",
    } | changes
    return submit(request=SubmissionRequest(**values), actor=SYSTEM).run


def start() -> EvaluationRun:
    make_suite()
    return submit_version(make_version())


def state(run: EvaluationRun) -> str:
    return state_of_submission(get_submission(run.pk))


def job_of(run: EvaluationRun) -> Job:
    run.refresh_from_db()
    assert run.job is not None
    return run.job


def baseline_of(run: EvaluationRun) -> EvaluationRun:
    run.refresh_from_db()
    assert run.baseline is not None
    return run.baseline


def version_of(run: EvaluationRun) -> AdapterVersion:
    run.refresh_from_db()
    assert run.version is not None
    run.version.refresh_from_db()
    return run.version


def go_to_evaluation(run: EvaluationRun) -> None:
    finish_check(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    finish_merge(job_of(run))
    finish_evaluation(job_of(baseline_of(run)))
    advance_run(run_id=run.pk)
    advance_run(run_id=baseline_of(run).pk)


# What a run needs next, from the states of its rows: DESIGN section 4 as a table.
@pytest.mark.parametrize(
    ("run_state", "version", "baseline", "expected"),
    [
        ("pending", {}, None, Step.CHECK),
        ("running", {"state": "invalid"}, None, Step.REFUSE),
        ("running", {"checked": "adapter"}, None, Step.CHECK),
        ("running", {"checked": "merged"}, None, Step.FIND_BASELINE),
        ("running", {"checked": "merged"}, {"state": "running"}, Step.MERGE),
        ("running", {"checked": "merged"}, {"state": "failed"}, Step.MERGE),
        ("running", {"checked": "merged", "merged": "d"}, {"state": "running"}, Step.WAIT),
        ("running", {"checked": "merged", "merged": "d"}, {"state": "failed"}, Step.GIVE_UP),
        ("running", {"checked": "merged", "merged": "d"}, {"state": "cancelled"}, Step.GIVE_UP),
        ("running", {"checked": "merged", "merged": "d"}, {"state": "scored", "report": "r"}, Step.EVALUATE),
        ("scored", {"checked": "merged", "merged": "d"}, {"state": "scored", "report": "r"}, Step.DECIDE),
        ("decided", {"checked": "merged", "merged": "d"}, {"state": "scored", "report": "r"}, Step.WAIT),
        ("failed", {}, None, Step.WAIT),
        ("cancelled", {}, None, Step.WAIT),
    ],
)
def test_next_step_of_a_candidate(
    run_state: str, version: dict[str, str], baseline: dict[str, str] | None, expected: Step
) -> None:
    checks: dict[str, Any] = {version["checked"]: {}} if "checked" in version else {}
    run = SimpleNamespace(
        subject="candidate",
        state=run_state,
        form="merged",
        version=SimpleNamespace(
            state=version.get("state", "submitted"),
            summary={"checks": checks} if checks else {},
            merged_artifact_id=version.get("merged"),
        ),
        baseline=baseline
        and SimpleNamespace(state=baseline["state"], report_artifact_id=baseline.get("report")),
    )
    assert next_step(run) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("run_state", "expected"),
    [("pending", Step.EVALUATE), ("running", Step.EVALUATE), ("scored", Step.WAIT), ("failed", Step.WAIT)],
)
def test_next_step_of_a_baseline(run_state: str, expected: Step) -> None:
    run = SimpleNamespace(subject="baseline", state=run_state, version=None)
    assert next_step(run) is expected  # type: ignore[arg-type]


def test_the_whole_way_of_a_good_adapter() -> None:
    run = start()
    assert (state(run), job_of(run).kind) == ("submitted", "check")
    assert job_of(run).config == {"target_form": "merged"}

    finish_check(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    assert (state(run), job_of(run).kind) == ("checked", "merge")
    assert version_of(run).summary["rank"] == 8
    # The baseline needs the accelerator, the merge a CPU: both wait in their queues.
    assert job_of(baseline_of(run)).config["subject"] == "baseline"

    finish_merge(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    assert (state(run), job_of(run).kind) == ("merged", "merge")

    finish_evaluation(job_of(baseline_of(run)))
    on_job_finished(job_id=job_of(baseline_of(run)).pk)
    assert baseline_of(run).state == "scored"
    assert job_of(run).kind == "evaluate"

    finish_evaluation(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    assert state(run) == "passed"
    assert version_of(run).state == "passed"
    # 100 holdout + 100 OOD + 100 regression + 2 x 50 canaries.
    assert ExampleResult.objects.filter(run=run).count() == 400
    assert Decision.objects.get(run=run).verdict == "passed"


def test_inputs_of_the_evaluation() -> None:
    run = start()
    go_to_evaluation(run)
    job, version = job_of(run), version_of(run)
    assert version.merged_artifact_id is not None
    assert set(job.inputs) == {"base_model", "suite", "adapter", "merged_model", "baseline_report"}
    assert job.inputs["merged_model"] == {"artifact": version.merged_artifact_id}
    assert job.inputs["baseline_report"] == {"artifact": baseline_of(run).report_artifact_id}
    files = job.inputs["suite"]["files"]
    assert sorted(files) == ["canary.jsonl", "holdout.jsonl", "ood.jsonl", "regression.jsonl"]
    assert all(entry["path"] == "data.jsonl" for entry in files.values())
    assert job.inputs["suite"]["inline"]["suite.json"]["name"] == "tickets"
    assert (job.config["subject"], job.config["form"]) == ("candidate", "merged")


def test_a_bad_adapter_is_rejected_with_the_rules_named() -> None:
    make_suite()
    run = make_decided_run(make_version(), make_suite(), num_wrong=60)
    decision = Decision.objects.get(run=run)
    assert decision.verdict == "rejected"
    # 60 of 100 have one of two fields wrong: the score is 0.7, below the suite's 0.8.
    failed = [rule["rule"] for rule in decision.rules if rule["outcome"] == "failed"]
    assert "min_score" in failed
    assert version_of(run).state == "rejected"


def test_unknown_leakage_is_inconclusive() -> None:
    leakage = {"status": "unknown", "pairs": []}
    run = make_decided_run(make_version(), make_suite(), leakage=leakage)
    assert Decision.objects.get(run=run).verdict == "inconclusive"
    assert version_of(run).state == "inconclusive"


def test_calls_again_change_nothing() -> None:
    run = start()
    for _ in range(8):
        before = Job.objects.count()
        for _ in range(3):
            advance_run(run_id=run.pk)
            advance_all()
        assert Job.objects.count() == before
        finish_awaited(run)
        advance_all()
        run.refresh_from_db()
    assert run.state == "decided"
    # check, merge, baseline, evaluation
    assert Job.objects.count() == 4
    for _ in range(2):
        advance_run(run_id=run.pk)
    assert Decision.objects.count() == 1
    assert ExampleResult.objects.filter(run=run).count() == 400


def test_ends_in_the_same_way_when_only_the_scheduler_looks() -> None:
    run = start()
    for _ in range(8):
        finish_awaited(run)
        advance_all()
    assert state(run) == "passed"


def test_baseline_that_ends_before_the_merge() -> None:
    run = start()
    finish_check(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    finish_evaluation(job_of(baseline_of(run)))
    on_job_finished(job_id=job_of(baseline_of(run)).pk)
    assert (state(run), job_of(run).kind) == ("checked", "merge")
    finish_merge(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    assert job_of(run).kind == "evaluate"


def test_unknown_ids_are_nothing() -> None:
    advance_run(run_id=uuid.uuid4())
    on_job_finished(job_id=uuid.uuid4())


def test_a_faulty_adapter_is_invalid_with_every_finding() -> None:
    run = start()
    warning = ERROR | {"code": "dropout-set", "severity": "warning"}
    finish_check(job_of(run), findings=[ERROR, ERROR | {"where": "k_proj"}, warning])
    on_job_finished(job_id=job_of(run).pk)
    version = version_of(run)
    assert (state(run), version.state) == ("invalid", "invalid")
    assert len(version.findings) == 3
    assert run.failure is not None
    assert run.failure["failure_class"] == "user"
    assert [detail["where"] for detail in run.failure["details"]] == ["q_proj", "k_proj"]
    assert run.baseline is None


def test_an_invalid_version_is_refused_by_another_suite_too() -> None:
    run = start()
    finish_check(job_of(run), findings=[ERROR])
    on_job_finished(job_id=job_of(run).pk)
    make_suite("other")
    second = submit_version(version_of(run), suite="other")
    assert state(second) == "invalid"
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    ("failure_class", "expected"), [("user", "invalid"), ("infrastructure", "failed"), ("internal", "failed")]
)
def test_failure_of_a_merge(failure_class: str, expected: str) -> None:
    run = start()
    finish_check(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    break_job(job_of(run), failure_class=failure_class, code="merge-refused", message="DoRA is not merged.")
    on_job_finished(job_id=job_of(run).pk)
    assert (state(run), version_of(run).state) == (expected, expected)
    assert run.failure is not None
    assert run.failure["message"] == "DoRA is not merged."


def test_a_failed_job_is_not_made_again_by_itself() -> None:
    run = start()
    break_job(job_of(run))
    for _ in range(3):
        advance_all()
    assert Job.objects.count() == 1
    assert state(run) == "failed"


def test_retry_goes_on_from_what_is_done() -> None:
    run = start()
    finish_check(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    break_job(job_of(run))
    on_job_finished(job_id=job_of(run).pk)
    retry_submission(run=run, actor=SYSTEM)
    run.refresh_from_db()
    assert (state(run), version_of(run).state, run.failure) == ("checked", "checked", None)
    assert job_of(run).kind == "merge"
    assert Job.objects.filter(kind="check").count() == 1
    assert Job.objects.filter(kind="merge").count() == 2
    for _ in range(4):
        finish_awaited(run)
        advance_all()
    assert state(run) == "passed"


def test_a_failed_baseline_fails_the_candidates_and_is_retried_with_them() -> None:
    make_suite()
    runs = [submit_version(make_version()) for _ in range(2)]
    for run in runs:
        finish_check(job_of(run))
        on_job_finished(job_id=job_of(run).pk)
        finish_merge(job_of(run))
        on_job_finished(job_id=job_of(run).pk)
    baseline = baseline_of(runs[0])
    assert baseline == baseline_of(runs[1])
    break_job(job_of(baseline), failure_class="user", message="The engine has no chat template.")
    on_job_finished(job_id=job_of(baseline).pk)
    for run in runs:
        assert (state(run), version_of(run).state) == ("failed", "failed")
        assert run.failure is not None
        assert run.failure["code"] == "baseline-failed"
        # The baseline's fault is not the adapter's.
        assert run.failure["failure_class"] == "internal"
        assert "The engine has no chat template." in run.failure["message"]
    retry_submission(run=runs[0], actor=SYSTEM)
    baseline.refresh_from_db()
    assert baseline.state == "running"
    finish_evaluation(job_of(baseline))
    on_job_finished(job_id=job_of(baseline).pk)
    assert job_of(runs[0]).kind == "evaluate"
    # The other one stays failed until somebody asks for it; its baseline is there by then.
    assert state(runs[1]) == "failed"
    retry_submission(run=runs[1], actor=SYSTEM)
    assert job_of(runs[1]).kind == "evaluate"


def test_a_report_that_cannot_be_read_is_our_fault() -> None:
    run = start()
    go_to_evaluation(run)
    finish_job(job_of(run), files={"examples.jsonl": b"{", "metrics.json": b"[]"}, kind="report")
    on_job_finished(job_id=job_of(run).pk)
    assert state(run) == "failed"
    run.refresh_from_db()
    assert run.failure is not None
    assert run.failure["code"] == "report-unreadable"
    assert not ExampleResult.objects.filter(run=run).exists()


def test_a_report_of_the_wrong_subject_is_refused() -> None:
    run = start()
    go_to_evaluation(run)
    finish_evaluation(job_of(run), baseline_rows(), subject="baseline")
    on_job_finished(job_id=job_of(run).pk)
    assert state(run) == "failed"


def test_cancel_ends_the_run_and_its_job() -> None:
    run = start()
    cancel_submission(run=run, actor=SYSTEM)
    assert (state(run), version_of(run).state) == ("cancelled", "cancelled")
    assert job_of(run).state == "cancelled"
    advance_all()
    assert state(run) == "cancelled"
    retry_submission(run=run, actor=SYSTEM)
    assert (state(run), job_of(run).state) == ("submitted", "queued")


def test_cancel_leaves_a_job_that_another_run_waits_for() -> None:
    run = start()
    make_suite("other")
    second = submit_version(version_of(run), suite="other")
    assert job_of(run) == job_of(second)
    cancel_submission(run=second, actor=SYSTEM)
    assert job_of(run).state == "queued"
    # The version still is on its way, by the first run.
    assert version_of(run).state == "submitted"


def test_a_job_cancelled_by_an_operator_cancels_the_run() -> None:
    run = start()
    request_cancel(job=job_of(run), actor=SYSTEM)
    on_job_finished(job_id=job_of(run).pk)
    assert (state(run), version_of(run).state) == ("cancelled", "cancelled")


def test_several_runs_of_one_version_have_outcomes_of_their_own() -> None:
    version, suite = make_version(), make_suite()
    first = make_decided_run(version, suite, num_wrong=60)
    assert version_of(first).state == "rejected"
    rules = {"name": "lax", "version": 1, "rules": {"leakage": {}}}
    register_policy(definition=rules, actor=SYSTEM)
    second = submit_version(version_of(first), policy="lax")
    # Same version, same suite: check, merge, baseline and the evaluation itself are look-ups.
    assert Job.objects.count() == 4
    assert (state(first), state(second)) == ("rejected", "passed")
    assert version_of(second).state == "passed"


def test_the_version_follows_the_newest_run() -> None:
    make_suite()
    make_suite("other")
    first = submit_version(make_version())
    second = submit_version(version_of(first), suite="other")
    for _ in range(6):
        finish_awaited(second)
        advance_all()
    assert state(second) == "passed"
    for _ in range(6):
        finish_awaited(first, num_wrong=90)
        advance_all()
    assert state(first) == "rejected"
    assert version_of(first).state == "passed"


def test_a_run_that_is_alive_leads_when_the_newest_failed() -> None:
    make_suite()
    make_suite("other")
    first = submit_version(make_version())
    second = submit_version(version_of(first), suite="other")
    finish_check(job_of(first))
    advance_all()
    finish_merge(job_of(first))
    advance_all()
    for run in (first, second):
        finish_evaluation(job_of(baseline_of(run)))
    advance_all()
    break_job(job_of(second))
    advance_all()
    assert (state(second), version_of(second).state) == ("failed", "merged")
    finish_evaluation(job_of(first))
    advance_all()
    assert (state(first), version_of(first).state) == ("passed", "passed")


def test_the_adapter_form_is_judged_when_it_ships() -> None:
    suite = make_suite(shipping_form="adapter")
    run = make_decided_run(make_version(), suite)
    assert run.form == "adapter"
    assert Decision.objects.get(run=run).verdict == "passed"
    assert Job.objects.get(kind="check").config == {"target_form": "adapter"}


def test_sound_in_one_form_and_not_in_another() -> None:
    make_suite("serving", shipping_form="adapter")
    run = make_decided_run(make_version(), make_suite())
    second = submit_version(version_of(run), suite="serving")
    finish_check(job_of(second), findings=[ERROR])
    advance_all()
    assert (state(second), state(run)) == ("failed", "passed")
    assert version_of(second).state == "failed"


def test_start_baseline_twice() -> None:
    make_suite()
    make_version()
    first = start_baseline(base_model_name="tiny", suite="tickets", actor=SYSTEM)
    again = start_baseline(base_model_name="tiny", suite="tickets@1", actor=SYSTEM)
    assert (first.is_new, again.is_new, first.run.pk) == (True, False, again.run.pk)
    break_job(job_of(first.run))
    advance_all()
    third = start_baseline(base_model_name="tiny", suite="tickets", actor=SYSTEM)
    assert (third.run.pk, third.run.state) == (first.run.pk, "running")


def test_text_that_no_database_takes_is_replaced() -> None:
    run = start()
    go_to_evaluation(run)
    rows = candidate_rows()
    rows[0]["output"] = "NUL \x00 and half a pair \ud800"
    finish_evaluation(job_of(run), rows)
    on_job_finished(job_id=job_of(run).pk)
    row = ExampleResult.objects.get(run=run, example_id="holdout-0")
    assert row.output == "NUL \ufffd and half a pair \ufffd\ufffd\ufffd"


@pytest.mark.django_db(transaction=True)
def test_two_threads_advance_the_same_run() -> None:
    run = start()
    errors: list[BaseException] = []

    def advance(barrier: threading.Barrier) -> None:
        try:
            barrier.wait()
            advance_run(run_id=run.pk)
            advance_all()
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            errors.append(error)
        finally:
            connection.close()

    for _ in range(6):
        finish_awaited(run)
        barrier = threading.Barrier(2)
        threads = [threading.Thread(target=advance, args=(barrier,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    assert state(run) == "passed"
    assert Job.objects.count() == 4
    assert Decision.objects.count() == 1
    assert ExampleResult.objects.filter(run=run).count() == 400


def test_rules_that_cannot_be_applied_are_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    run = start()
    go_to_evaluation(run)
    finish_evaluation(job_of(run))

    def refuse(**_: Any) -> None:
        raise GateError("policy default@1 cannot be read")

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "decide_run", refuse)
        on_job_finished(job_id=job_of(run).pk)
    run.refresh_from_db()
    assert run.failure is not None
    assert (state(run), run.failure["code"]) == ("failed", "gate-failed")
    assert state(retry_submission(run=run, actor=SYSTEM)) == "passed"
    assert ExampleResult.objects.filter(run=run).count() == 400


def test_running_job_is_waited_for() -> None:
    run = start()
    claim_job(job_id=job_of(run).pk, worker="by-hand")
    advance_run(run_id=run.pk)
    assert state(run) == "submitted"
    assert Job.objects.count() == 1
