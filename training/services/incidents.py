"""The incident register (MISSION T6): incidents are opened by the diagnosis and by people.

The functions `note_...` are for the code that copies what a run's job reports. Call them inside its
transaction, with the run's row locked; called again with the same, they change nothing.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from registry.choices import TokenScope
from registry.services.actors import SYSTEM, Actor
from training.choices import DocumentName, FindingSeverity, IncidentEntryKind, IncidentOpener
from training.errors import TrainingInvalid
from training.models import Incident, Symptom, TrainingRun
from training.models.incidents import MAX_DETECTOR_CHARACTERS, MAX_TITLE_CHARACTERS
from training.selectors.incidents import get_incident
from training.services.incident_requests import IncidentRequest, list_request_faults
from training.services.incident_rows import lock_register, log, store_incident

MAY_NOTE: Final = (TokenScope.SUBMIT, TokenScope.REVIEW)
"""Whoever trains may open incidents and note steps; to close one is a judgement, as in reviews of data."""

OPENING_SEVERITIES: Final = frozenset({FindingSeverity.ERROR})
"""Findings of these severities open an incident. A warning by itself is something to look at, no incident."""

BEFORE_FIRST_STEP: Final = 0
"""The step of what is found before the first one."""

MAX_MESSAGE_CHARACTERS: Final = 4000
"""As much as is kept of what a job says; jobs quote data and outputs."""

_FAILED: Final = "failed"
_NOT_FINITE: Final = "loss-not-finite"
logger = logging.getLogger(__name__)


def open_incident(*, request: IncidentRequest, actor: Actor) -> Incident:
    """Opens an incident by hand.

    Raises:
        ScopeError: the actor may neither submit nor review.
        TrainingInvalid: with every fault at once (code `incident-invalid`).
    """
    actor.require_any(MAY_NOTE)
    if faults := list_request_faults(request):
        raise TrainingInvalid("incident-invalid", faults=faults)
    with transaction.atomic():
        run = _lock_run(request.training_run)
        lock_register()
        incident = store_incident(
            symptom=Symptom.objects.filter(code=request.symptom).first(),
            run=run,
            opened_by=IncidentOpener.PERSON,
            actor=actor,
            title=request.title,
            evaluation_run=request.evaluation_run,
            first_step=request.first_step,
            found=request.found,
            cause=request.cause,
            fix=request.fix,
        )
    return get_incident(incident.number)


def note_finding(
    *,
    run: TrainingRun,
    code: str,
    row: str | None,
    severity: str,
    message: str,
    step: int | None,
    source: str = "monitor",
) -> Incident | None:
    """Opens an incident for a finding, or adds the finding to the run's incident of the same symptom.

    Args:
        run: In which it was found.
        code: Of the finding.
        row: Code of the row of the handbook; None or "" for none. An unknown code counts as none.
        severity: A `FindingSeverity`.
        message: The evidence in one sentence.
        step: Where it begins; `BEFORE_FIRST_STEP` before the first one, None when it has no step.
        source: The part of the system that found it; it stands before the code: "monitor/loss-flat".

    Returns:
        The incident; None when the severity opens none. Several runs may follow one job; what is found in it
        is one incident, that of the first run.
    """
    if severity not in OPENING_SEVERITIES:
        return None
    detector = _storable(f"{source}/{code}", MAX_DETECTOR_CHARACTERS)
    evidence = _storable(message, MAX_MESSAGE_CHARACTERS)
    with transaction.atomic():
        lock_register()
        symptom = _find_symptom(row)
        incident = _find_incident(run, symptom)
        if incident is None:
            incident = store_incident(
                symptom=symptom,
                run=run,
                opened_by=IncidentOpener.DIAGNOSIS,
                actor=SYSTEM,
                title=_storable(f"{symptom or code} in {run.name}", MAX_TITLE_CHARACTERS),
                first_step=step,
                found=f"{detector}: {evidence}",
            )
        elif incident.entries.filter(detector=detector).exists():
            return incident
        log(incident, SYSTEM, IncidentEntryKind.FINDING, evidence, detector=detector)
    return incident


def note_preflight(*, run: TrainingRun, checks: Iterable[Mapping[str, Any]]) -> list[Incident]:
    """Opens incidents for the checks of a preflight that failed, one for each row of the handbook.

    Args:
        run: Whose preflight it is.
        checks: `{"code", "status", "message", "row"}` each.
    """
    found = [
        note_finding(
            run=run,
            code=str(check.get("code")),
            row=row if isinstance(row := check.get("row"), str) else None,
            severity=FindingSeverity.ERROR,
            message=str(check.get("message", "")),
            step=BEFORE_FIRST_STEP,
            source="preflight",
        )
        for check in checks
        if check.get("status") == _FAILED
    ]
    return [incident for incident in found if incident is not None]


def note_failed_run(*, run: TrainingRun) -> list[Incident]:
    """Opens incidents for the rows of the handbook that the failure of a run names (`failure["rows"]`) and
    that no finding or check has opened one for: memory that ran out, a loss that is not finite.

    A failure that names no row, such as a missing file, opens none.
    """
    failure = run.failure or {}
    noted = set(_diagnosed(run).values_list("symptom_id", flat=True))
    found = [
        note_finding(
            run=run,
            code=str(failure.get("code")),
            row=row,
            severity=FindingSeverity.ERROR,
            message=str(failure.get("message", "")),
            step=_find_failing_step(run, row),
            source="run",
        )
        for row in failure.get("rows", [])
        if row not in noted
    ]
    return [incident for incident in found if incident is not None]


def _storable(text: str, max_chars: int) -> str:
    """The beginning of a text, without what PostgreSQL cannot keep."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:max_chars]


def _find_symptom(row: str | None) -> Symptom | None:
    symptom = Symptom.objects.filter(code=row).first() if row else None
    if row and symptom is None:
        logger.warning("the handbook has no row %r; the incident is opened without one", row)
    return symptom


def _find_incident(run: TrainingRun, symptom: Symptom | None) -> Incident | None:
    return _diagnosed(run).filter(symptom=symptom).order_by("number").first()


def _diagnosed(run: TrainingRun) -> QuerySet[Incident]:
    """What the diagnosis has opened for the run, or for another run that follows the same job."""
    rows = Incident.objects.filter(opened_by=IncidentOpener.DIAGNOSIS)
    return (
        rows.filter(training_run=run) if run.job_id is None else rows.filter(training_run__job_id=run.job_id)
    )


def _find_failing_step(run: TrainingRun, row: str) -> int | None:
    """The first step that was not finite as far as it is known, else the last one that was measured."""
    if row == _NOT_FINITE:
        document = run.documents.filter(name=DocumentName.NOT_FINITE).first()
        step = None if document is None else document.content.get("first_bad_step")
        if isinstance(step, int) and not isinstance(step, bool) and step >= 0:
            return step
    return run.metric_points.order_by("-step").values_list("step", flat=True).first()


def _lock_run(run_id: str) -> TrainingRun | None:
    """Locked before the register, in the order in which runs that follow their jobs do it."""
    return TrainingRun.objects.select_for_update().get(pk=run_id) if run_id else None
