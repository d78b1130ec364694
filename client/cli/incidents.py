"""`assay incident`: the register of what went wrong in trainings and evaluations, and why."""

import json
from pathlib import Path
from typing import Annotated

import typer

from client.cli.console import Output
from client.cli.options import JsonOption
from client.cli.session import session_of
from client.errors import AssayError, UsageError
from client.incidents import Incident, IncidentEntry, Incidents
from client.reports.text import make_table, safe
from client.safe_text import visible

incident_app = typer.Typer(
    no_args_is_help=True, help="Open incidents, note steps, resolve them, review a quarter."
)

NumberArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="Number of the incident.")]
_STATE_STYLES = {"open": "red", "being-investigated": "yellow", "resolved": "green", "dismissed": "dim"}


@incident_app.command("open")
def open_command(
    context: typer.Context,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What went wrong, in one line.")],
    symptom: Annotated[
        str | None, typer.Option(help="Row of the handbook (see `assay handbook`); omit it when none fits.")
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Id of the training run.")] = None,
    evaluation: Annotated[str | None, typer.Option(metavar="ID", help="Id of an evaluation.")] = None,
    step: Annotated[int | None, typer.Option(min=0, help="First step; 0 is before the first one.")] = None,
    found: Annotated[str, typer.Option(help="How it was found.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Open an incident; what the diagnosis finds opens one by itself."""
    session = session_of(context)
    body = {
        "title": title,
        "symptom": symptom,
        "training_run": run,
        "evaluation_run": evaluation or "",
        "first_step": step,
        "found": found,
    }
    with session.open_api() as api:
        incident = Incidents(api.http).open(body)
    _end(session.output, incident, as_json=as_json)


@incident_app.command("list")
def list_command(
    context: typer.Context,
    state: Annotated[
        str | None, typer.Option(help="Only open, being-investigated, resolved or dismissed ones.")
    ] = None,
    symptom: Annotated[str | None, typer.Option(help='Only this row; "" for those without a row.')] = None,
    asks_for_check: Annotated[
        bool,
        typer.Option("--asks-for-check", help="Only those that wait for a check or a reason against it."),
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List incidents, the newest first."""
    session = session_of(context)
    with session.open_api() as api:
        incidents = Incidents(api.http).list(
            state=state, symptom=symptom, asks_for_check=asks_for_check or None, limit=limit
        )
    if as_json:
        session.output.document(json.dumps([item.document for item in incidents], indent=2) + "\n")
        return
    table = make_table(
        ("#", "state", "row", "step", "title", "opened", ""), right_aligned=frozenset({"#", "step"})
    )
    for item in incidents:
        table.add_row(
            safe(str(item.number)),
            safe(item.state, _STATE_STYLES.get(item.state, "")),
            safe(item.symptom or "-"),
            safe("-" if item.first_step is None else str(item.first_step)),
            safe(item.title),
            safe(item.opened_at[:16]),
            safe("asks for a check" if item.waits_for_check else "", "yellow"),
        )
    session.output.result(table if incidents else "no incidents")


@incident_app.command("show")
def show_command(context: typer.Context, number: NumberArgument, as_json: JsonOption = False) -> None:
    """Show an incident with its log."""
    session = session_of(context)
    with session.open_api() as api:
        incidents = Incidents(api.http)
        incident = incidents.get(number)
        entries = list(incidents.iterate_entries(number))
    _end(session.output, incident, as_json=as_json)
    if not as_json:
        _write_entries(session.output, entries)


@incident_app.command("note")
def note_command(
    context: typer.Context,
    number: NumberArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What was done, and what it showed.")],
) -> None:
    """Note a step that was taken."""
    session = session_of(context)
    with session.open_api() as api:
        Incidents(api.http).note(number, text)
    session.output.result(safe(f"noted at incident #{number}"))


@incident_app.command("investigate")
def investigate_command(context: typer.Context, number: NumberArgument) -> None:
    """Say that you look into it."""
    _change(context, number, "investigate", {})


@incident_app.command("resolve")
def resolve_command(
    context: typer.Context,
    number: NumberArgument,
    cause: Annotated[str, typer.Option(help="What it was.")],
    fix: Annotated[str, typer.Option(help="What was done about it.")],
) -> None:
    """Close an incident whose cause is known and mended."""
    _change(context, number, "resolve", {"cause": cause, "fix": fix})


@incident_app.command("dismiss")
def dismiss_command(
    context: typer.Context,
    number: NumberArgument,
    reason: Annotated[str, typer.Option(help="Why it is no incident.")],
) -> None:
    """Close what turned out to be no incident; it does not count as an occurrence."""
    _change(context, number, "dismiss", {"reason": reason})


@incident_app.command("check")
def check_command(
    context: typer.Context,
    number: NumberArgument,
    made: Annotated[
        str | None, typer.Option(help="The check that was made: its code, or an address.")
    ] = None,
    declined: Annotated[str | None, typer.Option(help="Why no check is made.")] = None,
) -> None:
    """Answer an incident whose symptom recurs: which check was made of it, or why none."""
    if (made is None) == (declined is None):
        raise UsageError("answer-unclear", "Give either --made or --declined.")
    answer, text = ("declined", declined) if made is None else ("made", made)
    _change(context, number, "check", {"answer": answer, "text": text})


@incident_app.command("report")
def report_command(
    context: typer.Context,
    quarter: Annotated[str | None, typer.Option(help="Like 2026Q4, in UTC; else the present one.")] = None,
    output_file: Annotated[
        Path | None, typer.Option("--output-file", dir_okay=False, help="Write the Markdown there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the review of a quarter as Markdown: what is new, what recurs, what is not closed."""
    session = session_of(context)
    with session.open_api() as api:
        incidents = Incidents(api.http)
        if as_json:
            text = json.dumps(incidents.review_quarter(quarter), indent=2, ensure_ascii=False) + "\n"
        else:
            text = visible(incidents.report_quarter(quarter), keep_newlines=True)
    if output_file is None:
        session.output.document(text)
        return
    try:
        output_file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AssayError(
            "output-file-unwritable", f"{output_file} cannot be written: {error.strerror or error}."
        ) from error
    session.output.notice(f"written to {output_file}")


def _change(context: typer.Context, number: int, action: str, body: dict[str, object]) -> None:
    session = session_of(context)
    with session.open_api() as api:
        incidents = Incidents(api.http)
        incident = incidents.change(incidents.get(number), action, body)
    session.output.result(safe(f"incident #{incident.number}: {incident.state}"))


def _end(output: Output, incident: Incident, *, as_json: bool) -> None:
    if as_json:
        output.document(json.dumps(incident.document, indent=2) + "\n")
        return
    output.result(safe(f"#{incident.number} {incident.state}: {incident.title}", "bold"))
    facts = {
        "row": incident.symptom,
        "training run": incident.training_run,
        "evaluation": incident.evaluation_run,
        "first step": None if incident.first_step is None else str(incident.first_step),
        "fingerprint": incident.fingerprint[:12],
        "found": incident.found,
        "cause": incident.cause,
        "fix": incident.fix,
        "opened": f"{incident.opened_at} by {incident.opened_by}",
        "closed": incident.closed_at,
        f"check {incident.check_answer}".rstrip(): incident.check_text,
    }
    for name, value in facts.items():
        if value:
            output.result(safe(f"  {name}: {value}"))
    if incident.check_question is not None and incident.waits_for_check:
        output.notice(incident.check_question, "yellow")
    output.notice(f"page: {incident.page}")


def _write_entries(output: Output, entries: list[IncidentEntry]) -> None:
    for entry in entries:
        output.result(safe(f"  {entry.at[:16]} {entry.detector or entry.actor} {entry.kind}: {entry.text}"))
