"""`assay jobs`: what the server's workers do."""

import json
from typing import Annotated

import typer

from client.api import AssayApi
from client.cli.console import Output
from client.cli.options import JsonOption
from client.cli.session import session_of
from client.errors import ErrorDetail
from client.reports.text import STATE_STYLES, make_table, safe
from client.run_models import Job, JobEvent

jobs_app = typer.Typer(no_args_is_help=True, help="List jobs, look into them, cancel them.")

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]
_FOLLOW_INTERVAL_SECONDS = 2.0
_LEVEL_STYLES = {"error": "red", "warning": "yellow"}


@jobs_app.command("list")
def list_command(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option(help="Only this kind: check, merge, evaluate, train, prepare, triage.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(help="Only this state: queued, running, succeeded, ...")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List jobs, the newest first."""
    session = session_of(context)
    with session.open_api() as api:
        jobs = api.list_jobs(kind=kind, state=state, limit=limit)
    if as_json:
        session.output.document(json.dumps([job.document for job in jobs], indent=2) + "\n")
        return
    table = make_table(("kind", "state", "%", "message", "created", "id"), right_aligned=frozenset({"%"}))
    for job in jobs:
        table.add_row(
            safe(job.kind),
            safe(job.state, STATE_STYLES.get(job.state, "")),
            safe(f"{100 * job.fraction:.0f}"),
            safe(job.message or "-"),
            safe(job.created_at or "-"),
            safe(job.id),
        )
    session.output.result(table if jobs else "no jobs")


@jobs_app.command("show")
def show_command(context: typer.Context, job_id: JobArgument, as_json: JsonOption = False) -> None:
    """Show a job: state, times, attempt, and why it failed."""
    session = session_of(context)
    with session.open_api() as api:
        job = api.get_job(job_id)
    if as_json:
        session.output.document(json.dumps(job.document, indent=2) + "\n")
        return
    _write_job(session.output, job)


def _write_job(output: Output, job: Job) -> None:
    output.result(safe(f"{job.kind} {job.id}: {job.state} {100 * job.fraction:.0f} % {job.message}".rstrip()))
    seconds = None if job.duration_seconds is None else f"{job.duration_seconds:.1f} s"
    facts = {
        "queue": job.queue,
        "attempt": job.attempt,
        "created": job.created_at,
        "started": job.started_at,
        "finished": job.finished_at,
        "took": seconds,
    }
    for name, value in facts.items():
        if value is not None:
            output.result(safe(f"  {name}: {value}"))
    if job.failure is not None:
        head = ErrorDetail(
            code=job.failure.code, message=job.failure.message, where=f"{job.failure.failure_class} fault"
        )
        output.findings([head, *job.failure.details])


@jobs_app.command("cancel")
def cancel_command(context: typer.Context, job_id: JobArgument) -> None:
    """Stop a job that waits or runs."""
    session = session_of(context)
    with session.open_api() as api:
        api.cancel_job(job_id)
    session.output.result(safe(f"job {job_id} is being cancelled"))


@jobs_app.command("logs")
def logs_command(
    context: typer.Context,
    job_id: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
) -> None:
    """Print a job's log and progress lines."""
    session = session_of(context)
    sequence = -1
    with session.open_api() as api:
        while True:
            # Asked before the events: those of a job that ended in between are then still read.
            is_ended = not follow or api.get_job(job_id).is_final
            sequence = _write_events(session.output, api, job_id, sequence)
            if is_ended:
                return
            session.wait_settings.sleep(_FOLLOW_INTERVAL_SECONDS)


def _write_events(output: Output, api: AssayApi, job_id: str, after: int) -> int:
    """Write all events that follow number ``after`` and return the last one's number."""
    while events := [event for event in api.list_job_events(job_id, after=after) if event.sequence > after]:
        for event in events:
            output.result(safe(_event_line(event), _LEVEL_STYLES.get(event.level or "", "")))
        after = events[-1].sequence
    return after


def _event_line(event: JobEvent) -> str:
    fraction = "" if event.fraction is None else f" {100 * event.fraction:.0f} %"
    level = f" {event.level}" if event.level else ""
    return f"{event.at}{level}{fraction} {event.message}"
