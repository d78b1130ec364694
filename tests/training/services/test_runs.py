"""Training runs follow their job; the job is ended by hand through the services that workers use."""

import uuid
from typing import Any

import pytest
from django.utils import timezone

from registry.errors import ScopeError
from registry.models import Job
from registry.services.actors import SYSTEM
from registry.services.jobs import JobEventRecord, claim_job, record_events, release_job
from tests.fixtures.evaluation import break_job, finish_job, make_dataset
from tests.fixtures.registry import make_base_model, make_caller
from training.choices import TRAINING_TRANSITIONS, TrainingRunState
from training.errors import TrainingConflict, TrainingInvalid
from training.models import TrainingRun
from training.selectors.runs import get_curves
from training.services.runs import (
    TrainingRequest,
    cancel_training_run,
    create_training_run,
    on_job_finished,
    reconcile_all,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

ADAPTER = {"adapter_model.safetensors": b"weights", "adapter_config.json": b"{}"}


@pytest.fixture(autouse=True)
def inputs(store: Any) -> None:
    make_base_model()
    for name, role in (("tickets-train", "train"), ("general", "general"), ("tickets-holdout", "holdout")):
        make_dataset(name, role, num=3)


def request_for(**changes: Any) -> TrainingRequest:
    values: dict[str, Any] = {
        "name": "tickets-lora",
        "base_model_name": "tiny",
        "datasets": ["tickets-train@1", "general@1"],
        "holdout": "tickets-holdout@1",
        "config": {"training": {"max_steps": 5}},
    } | changes
    return TrainingRequest(**values)


def create(**changes: Any) -> TrainingRun:
    return create_training_run(request=request_for(**changes), actor=SYSTEM)


def job_of(run: TrainingRun) -> Job:
    run.refresh_from_db()
    assert run.job is not None
    return run.job


def metric(step: int, **values: float) -> JobEventRecord:
    return JobEventRecord(at=timezone.now(), type="metric", step=step, values=values)


def test_the_job_gets_one_file_for_each_dataset() -> None:
    run = create()
    job = job_of(run)
    assert (job.kind, job.code_version, run.state) == ("train", "train@3", "queued")
    assert sorted(job.inputs["training_data"]["files"]) == [
        "general/general@1.jsonl",
        "tickets-train@1.jsonl",
    ]
    assert set(job.inputs) == {"base_model", "training_data", "holdout"}
    # Defaults are spelled out, so that a later change of a default does not change what this run was (D1).
    assert job.config["training"]["max_steps"] == 5
    assert job.config["training"]["learning_rate"] == 2e-4
    assert job.config["lora"]["r"] == 16
    assert job.config["base_model_name"] == run.base_model.name


def test_curves_while_running_and_the_result() -> None:
    run = create()
    claim = claim_job(job_id=job_of(run).pk, worker="w")
    assert claim is not None
    record_events(claim=claim, events=[metric(1, loss=2.0, learning_rate=1e-4), metric(2, loss=1.5)])
    reconcile_all()
    run.refresh_from_db()
    assert run.state == "running"
    assert get_curves(run) == {"learning_rate": [(1, 1e-4)], "loss": [(1, 2.0), (2, 1.5)]}
    record_events(
        claim=claim, events=[metric(2, held_out_loss=1.6), metric(3, loss=1.0, broken=float("nan"))]
    )
    reconcile_all()
    reconcile_all()
    assert get_curves(run)["loss"] == [(1, 2.0), (2, 1.5), (3, 1.0)]
    assert get_curves(run)["held_out_loss"] == [(2, 1.6)]
    assert "broken" not in get_curves(run)


def test_a_repeated_attempt_takes_the_place_of_the_first() -> None:
    run = create()
    claim = claim_job(job_id=job_of(run).pk, worker="w")
    assert claim is not None
    record_events(claim=claim, events=[metric(1, loss=2.0), metric(2, loss=1.5)])
    reconcile_all()
    release_job(claim=claim)
    reconcile_all()
    run.refresh_from_db()
    assert run.state == "queued"
    claim = claim_job(job_id=job_of(run).pk, worker="w")
    assert claim is not None
    record_events(claim=claim, events=[metric(1, loss=2.25)])
    reconcile_all()
    run.refresh_from_db()
    assert run.state == "running"
    assert get_curves(run)["loss"][0] == (1, 2.25)


def test_success() -> None:
    run = create()
    job = finish_job(job_of(run), values={"final_loss": 0.5}, files=ADAPTER, kind="adapter")
    on_job_finished(job_id=job.pk)
    run.refresh_from_db()
    assert (run.state, run.artifact, run.values) == ("succeeded", job.output_artifact, {"final_loss": 0.5})
    assert run.finished_at == job.finished_at


def test_the_same_again_is_a_look_up() -> None:
    first = create()
    finish_job(job_of(first), files=ADAPTER, kind="adapter")
    reconcile_all()
    again = create(name="second")
    assert again.pk != first.pk
    assert (again.state, Job.objects.filter(kind="train").count()) == ("succeeded", 1)
    assert create(config={"training": {"max_steps": 6}}).state == "queued"


def test_failure_and_success_without_an_adapter() -> None:
    run = create()
    break_job(job_of(run), code="loss-not-finite", message="The loss is not finite.")
    on_job_finished(job_id=job_of(run).pk)
    run.refresh_from_db()
    assert run.state == "failed"
    assert run.failure is not None
    assert run.failure["code"] == "loss-not-finite"
    other = create(config={})
    finish_job(job_of(other))
    reconcile_all()
    other.refresh_from_db()
    assert other.failure is not None
    assert (other.state, other.failure["code"]) == ("failed", "adapter-missing")


def test_cancel() -> None:
    run, twin = create(), create()
    cancel_training_run(run=run, actor=SYSTEM)
    # The twin waits for the same job.
    assert job_of(twin).state == "queued"
    cancel_training_run(run=twin, actor=SYSTEM)
    assert job_of(twin).state == "cancelled"
    reconcile_all()
    with pytest.raises(TrainingConflict):
        cancel_training_run(run=run, actor=SYSTEM)


def test_all_faults_at_once() -> None:
    request = request_for(
        name="Bad name",
        base_model_name="tyni",
        datasets=["tickets-trian@1", "tickets-holdout@1"],
        holdout="general@1",
        config={"lora": {"rank": 4}, "training": {"learning_rate": -1}},
    )
    with pytest.raises(TrainingInvalid) as caught:
        create_training_run(request=request, actor=SYSTEM)
    assert [fault.where for fault in caught.value.faults] == [
        "/name",
        "/base_model",
        "/datasets/0",
        "/datasets/1",
        "/holdout",
        "/config/lora/rank",
        "/config/training/learning_rate",
    ]
    assert not TrainingRun.objects.exists()


def test_no_dataset() -> None:
    with pytest.raises(TrainingInvalid) as caught:
        create(datasets=[])
    assert [fault.code for fault in caught.value.faults] == ["datasets-missing"]


def test_rights() -> None:
    with pytest.raises(ScopeError):
        create_training_run(request=request_for(), actor=make_caller("read").actor)


def test_unknown_job_is_nothing() -> None:
    on_job_finished(job_id=uuid.uuid4())


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
def test_ends_are_final(state: str) -> None:
    assert TRAINING_TRANSITIONS[TrainingRunState(state)] == frozenset()
