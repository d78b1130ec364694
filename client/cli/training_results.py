"""How a training run is shown, and how its end is told."""

import json

from client.api import AssayApi
from client.cli.console import Output
from client.cli.program import CommandExit
from client.errors import ErrorDetail
from client.exit_codes import ERROR, REJECTED
from client.reports.text import safe
from client.reports.training import list_findings, render_checks, render_curves
from client.training_models import TrainingRun

_DOCUMENT_TITLES = {"preflight": "Before the first step", "mini": "The small experiment"}


def show_training(output: Output, api: AssayApi, run: TrainingRun) -> None:
    """Write what is known of a run besides how it stands: facts, checks, curves and findings."""
    facts = {
        "name": run.name,
        "purpose": run.purpose,
        "varies": run.parent,
        "note": run.note,
        "created": run.created_at,
        "adapter": run.artifact,
    }
    for name, value in facts.items():
        if value:
            output.result(safe(f"  {name}: {value}"))
    documents = api.get_training_documents(run.id)
    for name, title in _DOCUMENT_TITLES.items():
        table = render_checks(documents.get(name))
        if table is not None:
            output.result(safe(title, "bold"))
            output.result(table)
    curves = render_curves(api.get_training_curves(run.id))
    if curves is not None:
        output.result(curves)
    output.findings([*run.lint, *list_findings(run)])


def end_training(output: Output, api: AssayApi, run: TrainingRun, *, as_json: bool) -> None:
    """Write how a run stands.

    Args:
        output: Where to write.
        api: For the checks of a run that is made for its verdict.
        run: As it is now.
        as_json: Write the server's answer to stdout instead of a sentence.

    Raises:
        CommandExit: 3 when the run failed or was cancelled, 1 when its verdict is "failed".
    """
    if as_json:
        output.document(json.dumps(run.document, indent=2) + "\n")
    else:
        verdict = "" if run.verdict is None else f", {run.purpose} {run.verdict}"
        output.result(safe(f"training run {run.id}: {run.state}{verdict}"))
    if run.verdict == "failed":
        _tell_failed_checks(output, api, run)
        raise CommandExit(REJECTED)
    if run.failure is not None:
        rows = f" Handbook: {', '.join(run.rows)}." if run.rows else ""
        head = ErrorDetail(code=run.failure.code, message=f"{run.failure.message}{rows}")
        output.findings([head, *run.failure.details])
    if run.state in {"failed", "cancelled"}:
        raise CommandExit(ERROR)


def _tell_failed_checks(output: Output, api: AssayApi, run: TrainingRun) -> None:
    document = api.get_training_documents(run.id).get(run.purpose)
    checks = document.get("checks") if isinstance(document, dict) else None
    listed = [check for check in checks if isinstance(check, dict)] if isinstance(checks, list) else []
    output.findings(
        [
            ErrorDetail(
                code=str(check.get("code", "unnamed")),
                message=str(check.get("message", "")),
                where=None if check.get("row") is None else f"handbook: {check['row']}",
                remedy=str(check["remedy"]) if check.get("remedy") else None,
            )
            for check in listed
            if check.get("status") == "failed"
        ]
    )
