"""Says of a failed run which rows of the handbook it belongs to (MISSION T5)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from training.choices import DocumentName, FindingSeverity
from training.models import TrainingRun
from training.selectors.runs import get_documents

OUT_OF_MEMORY: Final = "out-of-memory"
"""Code of a job that ran out of memory, on the machine or on an accelerator."""
_FAILED: Final = "failed"


def name_handbook_rows(run: TrainingRun) -> None:
    """Adds `rows` to the failure of a run that has just failed, and names them in its message.

    Call it inside the transaction that fails the run.
    """
    run.refresh_from_db(fields=["failure"])
    failure = run.failure
    if failure is None:
        return
    rows = list(dict.fromkeys(_iterate_rows(run, failure)))
    if not rows:
        return
    message = str(failure.get("message", ""))
    unnamed = [row for row in rows if row not in message]
    if unnamed:
        message = f"{message} (handbook: {', '.join(unnamed)})".strip()
    run.failure = {**failure, "message": message, "rows": rows}
    run.save(update_fields=["failure"])


def _iterate_rows(run: TrainingRun, failure: Mapping[str, Any]) -> Iterator[str]:
    """Resource faults first, then what stopped the run, then what the monitor had found before."""
    code = failure.get("code")
    if code == OUT_OF_MEMORY:
        has_begun = run.metric_points.exists()
        yield "out-of-memory-later" if has_begun else "out-of-memory-at-start"
    documents = get_documents(run)
    if code == "loss-not-finite" or DocumentName.NOT_FINITE in documents:
        yield "loss-not-finite"
    for check in list_checks(documents.get(DocumentName.PREFLIGHT)):
        if check.get("status") == _FAILED and isinstance(check.get("row"), str):
            yield check["row"]
    for finding in run.findings.filter(severity=FindingSeverity.ERROR):
        if finding.row:
            yield finding.row


def list_checks(document: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The checks of a preflight or mini document, [] without one; what is no check is left out."""
    checks = (document or {}).get("checks")
    return [check for check in checks if isinstance(check, Mapping)] if isinstance(checks, list) else []
