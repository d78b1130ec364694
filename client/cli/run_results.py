"""How a baseline or training run's end is told."""

import json

from client.cli.console import Output
from client.cli.program import CommandExit
from client.errors import ErrorDetail
from client.exit_codes import ERROR
from client.reports.text import safe
from client.run_models import Run


def end_run(output: Output, run: Run, *, noun: str, as_json: bool) -> None:
    """Write how a run stands; a failed or cancelled one ends the program with an error.

    Args:
        output: Where to write.
        run: The run as it is now.
        noun: "baseline" or "training run".
        as_json: Write the server's answer to stdout instead of a sentence.

    Raises:
        CommandExit: The run failed or was cancelled.
    """
    if as_json:
        output.document(json.dumps(run.document, indent=2) + "\n")
    else:
        output.result(safe(f"{noun} {run.id}: {run.state}"))
    if run.failure is not None:
        head = ErrorDetail(code=run.failure.code, message=run.failure.message)
        output.findings([head, *run.failure.details])
    if run.state in {"failed", "cancelled"}:
        raise CommandExit(ERROR)
