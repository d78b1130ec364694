"""Looks at what adapters trained here answered in their evaluation, and tells their training runs.

Here, above both applications: neither the evaluation nor the training may know the other.
"""

import logging
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from evaluation.choices import RunState
from evaluation.models import EvaluationRun
from evaluation.selectors.runs import list_examples, list_run_ids_of_job
from registry.choices import DatasetRole
from training.engine.monitor.output_reading import read_output_symptoms
from training.engine.monitor.outputs import judge_outputs
from training.services.output_findings import note_output_findings

logger = logging.getLogger(__name__)
LOOK_BACK = timedelta(hours=1)
"""How far the scheduler looks back for evaluations whose worker was killed before it could tell."""


def on_job_finished(*, job_id: UUID) -> None:
    """Diagnoses the evaluations that a finished job belongs to. A job of another kind is nothing."""
    for run_id in list_run_ids_of_job(job_id):
        _diagnose(run_id)


def diagnose_recent() -> None:
    """Diagnoses the evaluations that ended within the last hour; again changes nothing."""
    since = timezone.now() - LOOK_BACK
    rows = EvaluationRun.objects.filter(state=RunState.DECIDED, finished_at__gte=since, version__isnull=False)
    for run_id in rows.values_list("pk", flat=True):
        _diagnose(run_id)


def _diagnose(run_id: UUID) -> None:
    run = EvaluationRun.objects.select_related("version", "baseline").get(pk=run_id)
    if run.state != RunState.DECIDED or run.version is None or run.metrics is None:
        return
    rows = list_examples(run).filter(role=DatasetRole.HOLDOUT, form=run.form)
    symptoms = read_output_symptoms(
        run.metrics,
        baseline=None if run.baseline is None else run.baseline.metrics,
        rows=rows.values_list("details", flat=True).iterator(),
    )
    report = judge_outputs(symptoms)
    kept = note_output_findings(artifact_digest=run.version.artifact_id, findings=report.findings)
    logger.info("evaluation %s: %d symptoms told to training runs", run_id, len(kept))
