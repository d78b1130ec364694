"""Copies what a run's job measured and reported: curves, findings and documents.

Call it with the run's row locked. Copying twice changes nothing, and what a repeated attempt says takes the
place of what the one before it said of the same thing.
"""

import logging
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from registry.choices import JobEventType
from registry.models import Job, JobEvent
from registry.selectors.jobs import list_reported_events
from training.choices import DocumentName, FindingSeverity
from training.models import MetricPoint, OverfitPass, RunDocument, TrainingFinding, TrainingRun
from training.models.run_reports import MAX_CODE_CHARACTERS, MAX_DOCUMENT_NAME_CHARACTERS
from training.services.failure_rows import list_checks
from training.services.incidents import note_finding, note_preflight

FINDING = "finding"
MAX_METRIC_NAME_CHARACTERS = 48
MAX_STEP = 2**31 - 1
MAX_TEXT_CHARACTERS = 2000
MAX_EVIDENCE = 40

logger = logging.getLogger(__name__)
_DOCUMENT_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def copy_reports(run: TrainingRun, job: Job) -> None:
    """Takes over everything that was reported since the last look."""
    events = list_reported_events(job=job, after=run.num_synced_events)
    if not events:
        return
    _copy_points(run, [event for event in events if event.type == JobEventType.METRIC])
    for event in events:
        if event.type == JobEventType.RECORD:
            _copy_record(run, event)
    run.num_synced_events = events[-1].sequence
    run.save(update_fields=["num_synced_events"])


def _copy_points(run: TrainingRun, events: Iterable[JobEvent]) -> None:
    points = {
        (event.step, name): MetricPoint(run=run, step=event.step, name=name, value=float(value))
        for event in events
        for name, value in event.values.items()
        if event.step is not None and _is_point(event.step, name, value)
    }
    MetricPoint.objects.bulk_create(
        points.values(),
        update_conflicts=True,
        unique_fields=["run", "step", "name"],
        update_fields=["value"],
        batch_size=200,
    )


def _copy_record(run: TrainingRun, event: JobEvent) -> None:
    if event.message == FINDING:
        _copy_finding(run, event)
    elif len(event.message) <= MAX_DOCUMENT_NAME_CHARACTERS and _DOCUMENT_NAME.fullmatch(event.message):
        _copy_document(run, event)
    else:
        logger.warning("training run %s reported a document without a usable name; it is left out", run.pk)


def _copy_document(run: TrainingRun, event: JobEvent) -> None:
    RunDocument.objects.update_or_create(
        run=run,
        name=event.message,
        defaults={
            "attempt": event.attempt,
            "passed": passed if isinstance(passed := event.values.get("passed"), bool) else None,
            "content": event.values,
        },
    )
    if event.message == DocumentName.PREFLIGHT:
        _remember_overfit(run, event.values)
        note_preflight(run=run, checks=list_checks(event.values))


def _remember_overfit(run: TrainingRun, preflight: Mapping[str, Any]) -> None:
    overfit = preflight.get("overfit")
    if preflight.get("passed") is not True or not isinstance(overfit, Mapping):
        return
    fingerprint = overfit.get("fingerprint")
    if overfit.get("status") == "passed" and isinstance(fingerprint, str) and _SHA256.fullmatch(fingerprint):
        OverfitPass.objects.get_or_create(
            fingerprint=fingerprint, defaults={"base_model_id": run.base_model_id, "run": run}
        )


def _copy_finding(run: TrainingRun, event: JobEvent) -> None:
    values = event.values
    code, step = values.get("code"), values.get("step")
    if not isinstance(code, str) or not code or not _is_step(step):
        logger.warning("training run %s reported a finding without code and step; it is left out", run.pk)
        return
    severity = values.get("severity")
    # What an earlier attempt found of this kind is found again, or not, by this one.
    run.findings.filter(code=code[:MAX_CODE_CHARACTERS], attempt__lt=event.attempt).delete()
    finding, _ = TrainingFinding.objects.update_or_create(
        run=run,
        code=code[:MAX_CODE_CHARACTERS],
        step=step,
        defaults={
            "row": _text(values.get("row"), MAX_CODE_CHARACTERS),
            "symptom_class": _text(values.get("class"), 32),
            "severity": severity if severity in FindingSeverity.values else FindingSeverity.WARNING,
            "attempt": event.attempt,
            "message": _text(values.get("message"), MAX_TEXT_CHARACTERS),
            "evidence": _numbers(values.get("evidence")),
            "treatment": _text(values.get("treatment"), MAX_TEXT_CHARACTERS),
        },
    )
    source, _, name = finding.code.rpartition("/")
    note_finding(
        run=run,
        code=name,
        row=finding.row,
        severity=finding.severity,
        message=finding.message,
        step=finding.step,
        source=source or "monitor",
    )


def _numbers(value: Any) -> dict[str, float | None]:
    """The named numbers of an evidence; one that is not finite was written as null."""
    if not isinstance(value, Mapping):
        return {}
    named = {str(name)[:MAX_CODE_CHARACTERS]: number for name, number in list(value.items())[:MAX_EVIDENCE]}
    return {name: number for name, number in named.items() if number is None or _is_number(number)}


def _text(value: Any, max_chars: int) -> str:
    return value[:max_chars] if isinstance(value, str) else ""


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_STEP


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_point(step: int, name: str, value: Any) -> bool:
    return _is_number(value) and step >= 0 and len(name) <= MAX_METRIC_NAME_CHARACTERS
