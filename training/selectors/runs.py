"""Reads training runs and their curves."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.db.models import Prefetch, QuerySet

from registry.models import BaseModel
from training.choices import ACTIVE_TRAINING_STATES, DocumentName, TrainingPurpose
from training.errors import TrainingNotFound
from training.models import MetricPoint, OverfitPass, RunDocument, TrainingFinding, TrainingRun

VERDICT_DOCUMENTS = {
    TrainingPurpose.MINI.value: DocumentName.MINI.value,
    TrainingPurpose.PREFLIGHT.value: DocumentName.PREFLIGHT.value,
}
"""The document that says how a run of a purpose came out; a run without it says nothing, which is no pass."""
MAX_KNOWN_OVERFITS = 200
"""A fingerprint is that of a base model, template and set of library versions; the newest matter."""


def list_training_runs() -> QuerySet[TrainingRun]:
    """All training runs, newest first."""
    runs = TrainingRun.objects.select_related("base_model", "holdout__dataset", "job", "created_by", "parent")
    # The contents of documents are large; whoever wants them asks for them.
    documents = Prefetch("documents", queryset=RunDocument.objects.defer("content"))
    return runs.prefetch_related("datasets__dataset", "findings", documents)


def get_training_run(run_id: uuid.UUID) -> TrainingRun:
    """One training run.

    Raises:
        TrainingNotFound: there is none of this id.
    """
    run = list_training_runs().filter(pk=run_id).first()
    if run is None:
        raise TrainingNotFound("training-run-not-found", run_id=str(run_id))
    return run


def list_active_run_ids() -> list[uuid.UUID]:
    """The ids of the runs whose job has not ended, as far as was seen."""
    runs = TrainingRun.objects.filter(state__in=ACTIVE_TRAINING_STATES).order_by("created_at")
    return list(runs.values_list("pk", flat=True))


def list_run_ids_of_job(job_id: uuid.UUID) -> list[uuid.UUID]:
    """The ids of the runs that a job belongs to."""
    return list(TrainingRun.objects.filter(job_id=job_id).values_list("pk", flat=True))


def get_curves(run: TrainingRun) -> Mapping[str, list[tuple[int, float]]]:
    """The run's curves by name, each a list of (step, value) in the order of steps."""
    curves: dict[str, list[tuple[int, float]]] = {}
    points = MetricPoint.objects.filter(run=run).order_by("name", "step")
    for name, step, value in points.values_list("name", "step", "value"):
        curves.setdefault(name, []).append((step, value))
    return curves


def list_findings(run: TrainingRun) -> list[TrainingFinding]:
    """What the monitor found, by the step where it begins; resources first where several begin at one."""
    return list(run.findings.all())


def get_document(run: TrainingRun, name: str) -> Mapping[str, Any] | None:
    """The run's document of that name, None when it reported none."""
    document = RunDocument.objects.filter(run=run, name=name).first()
    content: Mapping[str, Any] | None = None if document is None else document.content
    return content


def get_documents(run: TrainingRun) -> dict[str, Mapping[str, Any]]:
    """All documents of the run by name."""
    documents = RunDocument.objects.filter(run=run)
    return {document.name: document.content for document in documents}


def get_verdict(run: TrainingRun) -> str | None:
    """How a run came out that is made for its verdict: "passed" or "failed".

    None for a run that is made for its adapter, and as long as the verdict is not there.
    """
    name = VERDICT_DOCUMENTS.get(run.purpose)
    document = next((item for item in run.documents.all() if item.name == name), None)
    if document is None or document.passed is None:
        return None
    return "passed" if document.passed else "failed"


def list_known_overfits(base_model: BaseModel) -> list[str]:
    """Fingerprints of overfit tests that passed on the same bytes of a base model, the newest first."""
    passes = OverfitPass.objects.filter(base_model__artifact_id=base_model.artifact_id)
    return list(passes.values_list("fingerprint", flat=True)[:MAX_KNOWN_OVERFITS])
