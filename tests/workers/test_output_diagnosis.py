"""What an adapter answers in its evaluation comes back to the training that made it."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from config.verdict_source import list_verdicts
from evaluation.models import EvaluationRun
from tests.fixtures.evaluation import make_decided_run, make_suite
from tests.fixtures.registry import make_version
from tests.fixtures.training_runs import finish, make_run
from training.models import Incident, TrainingRun
from training.services.handbook import load_shipped_handbook
from workers.output_diagnosis import diagnose_recent, on_job_finished

pytestmark = pytest.mark.django_db


def make_judged(*, drop: float = 0.0, **behaviour: float) -> tuple[TrainingRun, EvaluationRun]:
    training = finish(make_run())
    version = make_version(content=b"weights")
    assert version.artifact_id == training.artifact_id
    run = make_decided_run(version, make_suite())
    metrics: Any = run.metrics
    for name in ("holdout", "ood"):
        metrics["sets"][name]["num_examples"] = 120
        metrics["sets"][name]["behaviour"] |= behaviour
    metrics["sets"]["regression"]["dimensions"]["chat"]["score"] -= drop
    run.save(update_fields=["metrics"])
    return training, run


def test_forgetting_opens_an_incident_once() -> None:
    load_shipped_handbook()
    training, run = make_judged(drop=0.2)
    for _ in range(2):
        diagnose_recent()
        assert run.job is not None
        on_job_finished(job_id=run.job.pk)
    assert training.findings.get(code="evaluation/forgetting").row == "forgetting"
    incident = Incident.objects.get(training_run=training, symptom__code="forgetting")
    assert incident.entries.filter(detector="evaluation/forgetting").count() == 1


def test_a_warning_is_kept_and_opens_no_incident() -> None:
    load_shipped_handbook()
    training, _ = make_judged(never_stops_rate=0.5)
    diagnose_recent()
    assert training.findings.get(code="evaluation/never-stops").severity == "warning"
    assert not Incident.objects.exists()


def test_sound_outputs_tell_nothing() -> None:
    training, _ = make_judged()
    diagnose_recent()
    assert not training.findings.filter(row="never-stops").exists()


def test_an_adapter_from_elsewhere_has_no_run_to_tell() -> None:
    _, run = make_judged(drop=0.2)
    TrainingRun.objects.update(artifact=None)
    diagnose_recent()
    assert not Incident.objects.exists()
    assert run.state == "decided"


def test_old_evaluations_are_left_alone() -> None:
    training, run = make_judged(never_stops_rate=0.5)
    EvaluationRun.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(hours=2))
    diagnose_recent()
    assert not training.findings.exists()


def test_the_comparison_is_told_verdict_and_scores() -> None:
    training, run = make_judged()
    assert training.artifact_id is not None
    rows = list_verdicts([training.artifact_id])
    assert rows["verdict"] == {training.artifact_id: run.decision.verdict}
    metrics: Any = run.metrics
    assert rows["holdout score"] == {training.artifact_id: metrics["sets"]["holdout"]["score"]}
    assert list_verdicts([]) == {}
