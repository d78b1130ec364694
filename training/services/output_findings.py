"""Takes over what the evaluation of a trained adapter showed (MISSION T5)."""

from collections.abc import Iterable

from django.db import transaction

from training.engine.monitor.findings import Finding
from training.models import TrainingFinding, TrainingRun
from training.services.incidents import note_finding

_SOURCE = "evaluation"


def note_output_findings(*, artifact_digest: str, findings: Iterable[Finding]) -> list[TrainingFinding]:
    """Keeps findings about an adapter's outputs with the runs that made it; errors open incidents.

    Called again with the same, it changes nothing. An adapter that was not trained here has no run, so
    nothing is kept: its report says the same.

    Args:
        artifact_digest: Of the adapter.
        findings: In the order of treatment.
    """
    found = list(findings)
    kept: list[TrainingFinding] = []
    for run_id in TrainingRun.objects.filter(artifact_id=artifact_digest).values_list("pk", flat=True):
        with transaction.atomic():
            run = TrainingRun.objects.select_for_update().get(pk=run_id)
            kept += [_keep(run, finding) for finding in found]
    return kept


def _keep(run: TrainingRun, finding: Finding) -> TrainingFinding:
    row, _ = TrainingFinding.objects.update_or_create(
        run=run,
        code=finding.code,
        step=finding.step,
        defaults={
            "row": finding.row.value,
            "symptom_class": finding.symptom_class.value,
            "severity": finding.severity.value,
            "message": finding.message,
            "evidence": dict(finding.evidence),
            "treatment": finding.treatment,
        },
    )
    note_finding(
        run=run,
        code=finding.code.removeprefix(f"{_SOURCE}/"),
        row=finding.row.value,
        severity=finding.severity.value,
        message=finding.message,
        step=None,
        source=_SOURCE,
    )
    return row
