"""Real threads on a real database: sets are registered once, one of two verdicts wins, each is counted."""

import functools
from typing import Any

import pytest

from registry.errors import AssayError
from registry.models import DatasetVersion
from registry.services.jobs import record_events
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.preparations import finish_preparation, make_preparation
from tests.fixtures.registry import make_caller
from tests.fixtures.training_runs import claim_of, finding, finish, make_run, metric, preflight
from tests.registry.services.test_races import run_together
from training.errors import TrainingConflict, VerdictChanged
from training.models import (
    MetricPoint,
    MiniConfiguration,
    OverfitPass,
    PreparedSet,
    RunDocument,
    TrainingFinding,
)
from training.selectors.reviews import get_review, get_review_item
from training.services.mini_configurations import store_mini_configuration
from training.services.preparations import follow_job
from training.services.review_results import close_task
from training.services.reviews import create_task, record_verdict
from training.services.runs import follow_job as follow_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("store")]


def faults_in(results: list[Any]) -> list[AssayError]:
    return [result for result in results if isinstance(result, AssayError)]


def test_sets_are_registered_once() -> None:
    row = make_preparation()
    finish_preparation(row)
    call = functools.partial(follow_job, preparation_id=row.pk)
    assert faults_in(run_together(*[call] * 4)) == []
    row.refresh_from_db()
    assert (row.state, PreparedSet.objects.count(), DatasetVersion.objects.count()) == ("succeeded", 2, 2)


def test_two_preparations_of_the_same_bytes_end_together() -> None:
    first = make_preparation()
    second = make_preparation(raw=first.raw)
    finish_preparation(first)
    calls = [functools.partial(follow_job, preparation_id=row.pk) for row in (first, second)]
    assert faults_in(run_together(*calls)) == []
    assert (PreparedSet.objects.count(), DatasetVersion.objects.count()) == (4, 2)


def test_one_of_two_verdicts_wins() -> None:
    anna, ben = make_caller("review"), make_caller("review")
    task = create_task(version=make_dataset("tickets", "train", num=3), actor=anna.actor)
    give = functools.partial(record_verdict, task=task, position=1, expected_revision=0)
    results = run_together(
        functools.partial(give, verdict="good", actor=anna.actor),
        functools.partial(give, verdict="bad", actor=ben.actor),
    )
    (fault,) = faults_in(results)
    assert isinstance(fault, VerdictChanged)
    item = get_review_item(task, 1)
    assert (item.revision, fault.fields["verdict"]) == (1, item.verdict)


def test_every_verdict_is_counted() -> None:
    anna = make_caller("review")
    version = make_dataset("tickets", "train", num=6)
    task = create_task(version=version, actor=anna.actor)
    calls = [
        functools.partial(
            record_verdict,
            task=task,
            position=position,
            verdict="bad",
            expected_revision=0,
            actor=anna.actor,
        )
        for position in range(1, 7)
    ]
    assert faults_in(run_together(*calls)) == []
    version.refresh_from_db()
    assert (version.num_reviewed, version.num_bad) == (6, 6)


def test_a_review_is_closed_once() -> None:
    anna = make_caller("review")
    task = create_task(version=make_dataset("tickets", "holdout", num=2), actor=anna.actor)
    for position in (1, 2):
        record_verdict(task=task, position=position, verdict="good", expected_revision=0, actor=anna.actor)
    call = functools.partial(close_task, task=task, actor=anna.actor)
    results = run_together(*[call] * 3)
    assert all(isinstance(fault, TrainingConflict) for fault in faults_in(results))
    assert len(faults_in(results)) == 2
    assert (get_review(task.pk).state, DatasetVersion.objects.count()) == ("closed", 2)


def test_reports_of_a_run_are_copied_once() -> None:
    run = make_run()
    events = [metric(1, loss=2.0), preflight(), *(finding(f"code-{number}", number) for number in range(5))]
    record_events(claim=claim_of(run), events=events)
    call = functools.partial(follow_run, run_id=run.pk)
    assert faults_in(run_together(*[call] * 4)) == []
    counts = [model.objects.count() for model in (TrainingFinding, RunDocument, MetricPoint, OverfitPass)]
    assert counts == [5, 1, 1, 1]
    finish(run)
    assert faults_in(run_together(*[call] * 4)) == []
    run.refresh_from_db()
    assert (run.state, TrainingFinding.objects.count()) == ("succeeded", 5)


def test_two_runs_of_one_job_remember_its_overfit_test_together() -> None:
    first, second = make_run("first"), make_run("second")
    assert first.job_id == second.job_id
    record_events(claim=claim_of(first), events=[preflight()])
    calls = [functools.partial(follow_run, run_id=row.pk) for row in (first, second)]
    assert faults_in(run_together(*calls)) == []
    assert OverfitPass.objects.count() == 1
    assert {document.run for document in RunDocument.objects.all()} == {first, second}


def test_one_mini_configuration_is_active() -> None:
    actor = make_caller("submit").actor
    store_mini_configuration(overlay={"training": {"max_steps": 1}}, actor=actor)
    calls = [
        functools.partial(store_mini_configuration, overlay={"training": {"max_steps": number}}, actor=actor)
        for number in (2, 3, 4)
    ]
    results = run_together(*calls)
    assert all(fault.code == "mini-configuration-changed" for fault in faults_in(results))
    assert len(faults_in(results)) < 3
    assert MiniConfiguration.objects.filter(is_active=True).count() == 1
