"""`assay submit`, `wait`, `report` and what else concerns submissions."""

import json
from itertools import islice
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer

from client.api import AssayApi
from client.cli.adapter_folder import pick_adapter
from client.cli.base_choice import choose_base_model
from client.cli.console import Output
from client.cli.display import make_display
from client.cli.following import follow_submission
from client.cli.options import (
    FormatOption,
    JsonOption,
    OutputFileOption,
    TimeoutOption,
    require_output_form,
    split_reference,
    write_report,
)
from client.cli.program import CommandExit
from client.cli.session import Session, session_of
from client.errors import AssayApiError, UsageError
from client.exit_codes import PASSED, exit_code_for
from client.models import Submission
from client.reports.render import ReportFormat, render_document
from client.reports.text import STATE_STYLES, make_table, render_example, safe
from client.uploads import Uploader, hash_files

submissions_app = typer.Typer(no_args_is_help=True, help="List, cancel and retry submissions.")

SubmissionArgument = Annotated[
    str,
    typer.Argument(metavar="SUBMISSION", help="Id of a submission, or an adapter version like tickets@3."),
]


def submit(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", exists=True, file_okay=False, help="What the training tool left behind."
        ),
    ],
    adapter: Annotated[str, typer.Option(help="Name of the adapter that this is a version of.")],
    suite: Annotated[str, typer.Option(help="Suite that judges it: name, or name@number.")],
    base: Annotated[
        str | None, typer.Option(help="Registered base model; may be omitted where there is only one.")
    ] = None,
    training_dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Dataset version it was trained on (name@number), for the leakage check. Repeatable."
        ),
    ] = None,
    path: Annotated[
        str | None, typer.Option(help="Subfolder of DIR with the adapter, where DIR holds several.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="Policy that decides; else the server's default.")
    ] = None,
    notes: Annotated[str | None, typer.Option(help="Remark that is kept with the submission.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the verdict and end with its exit code.")
    ] = False,
    timeout: TimeoutOption = None,
    output: FormatOption = ReportFormat.TEXT,
    output_file: OutputFileOption = None,
) -> None:
    """Submit an adapter folder for evaluation.

    Exit codes: 0 passed (or submitted, without --wait), 1 rejected, 2 inconclusive, 3 usage or server error,
    or an invalid, failed or cancelled submission.
    """
    require_output_form(output, output_file)
    session = session_of(context)
    files = pick_adapter(session.output, folder, path)
    with session.open_api() as api:
        # Asked before the upload: a wrong name should not cost the time of sending a gigabyte.
        base_model = choose_base_model(api, base, hint=files.base_hint)
        _require_suite(api, suite)
        with make_display(session.output) as display:
            artifact = Uploader(api, journal=session.upload_journal(), progress=display).upload(
                "adapter", hash_files(files.sources, display)
            )
        submission = api.create_submission(
            adapter=adapter,
            artifact=artifact,
            base_model=base_model,
            suite=suite,
            policy=policy,
            training_datasets=training_dataset or (),
            notes=notes,
        )
        session.output.notice(f"Submission {submission.id}: {submission.reference} on {submission.suite}")
        if not submission.is_final and not wait:
            _write_pending(session.output, submission, output)
            raise CommandExit(PASSED)
        # The same files, suite and policy were judged before: the verdict is there already.
        if not submission.is_final:
            submission = follow_submission(session, api, submission.id, timeout_seconds=timeout)
    write_report(session, submission, output, output_file)
    raise CommandExit(exit_code_for(submission))


def _require_suite(api: AssayApi, suite: str) -> None:
    try:
        api.get_suite(suite)
    except AssayApiError as error:
        # A token that may only submit cannot read suites; the server checks the name again at the submission.
        if error.status != 403:
            raise


def _write_pending(output: Output, submission: Submission, report_format: ReportFormat) -> None:
    if report_format is ReportFormat.JSON:
        output.document(render_document(submission, report_format))
        return
    output.result(safe(submission.id))
    output.notice(f"Wait for the verdict with: assay wait {submission.id}")


def wait_command(
    context: typer.Context,
    submission: SubmissionArgument,
    timeout: TimeoutOption = None,
    output: FormatOption = ReportFormat.TEXT,
    output_file: OutputFileOption = None,
) -> None:
    """Wait for a submission's verdict, report it and end with its exit code."""
    require_output_form(output, output_file)
    session = session_of(context)
    with session.open_api() as api:
        submission_id = find_submission(api, submission).id
        ended = follow_submission(session, api, submission_id, timeout_seconds=timeout)
    write_report(session, ended, output, output_file)
    raise CommandExit(exit_code_for(ended))


def report(
    context: typer.Context,
    submission: SubmissionArgument,
    output: FormatOption = ReportFormat.TEXT,
    output_file: OutputFileOption = None,
    examples: Annotated[
        int, typer.Option(min=0, max=200, help="Also show this many failed examples (text form only).")
    ] = 0,
) -> None:
    """Report a submission as it is now. Ends with 0 whatever the verdict: asking worked."""
    require_output_form(output, output_file)
    session = session_of(context)
    with session.open_api() as api:
        found = find_submission(api, submission)
        write_report(session, found, output, output_file)
        if examples and output is ReportFormat.TEXT:
            rows = api.http.iterate_pages(f"submissions/{found.id}/examples", {"passed": False})
            for row in islice(rows, examples):
                session.output.result("")
                session.output.result(render_example(dict(row)))


def find_submission(api: AssayApi, reference: str) -> Submission:
    """Return a submission by its id or by its adapter version ("tickets@3").

    Raises:
        UsageError: It is neither, or there is no such version.
    """
    try:
        return api.get_submission(str(UUID(reference)))
    except ValueError:
        adapter, version = split_reference(reference, "a submission by its id, or an adapter version")
    for submission in api.iterate_submissions(adapter=adapter):
        if submission.adapter == adapter and submission.version == version:
            return api.get_submission(submission.id)
    raise UsageError(
        "version-unknown", f"There is no submission of {reference}; see `assay submissions list`."
    )


@submissions_app.command("list")
def list_command(
    context: typer.Context,
    adapter: Annotated[str | None, typer.Option(help="Only this adapter's.")] = None,
    state: Annotated[str | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List submissions, the newest first."""
    session = session_of(context)
    with session.open_api() as api:
        found = list(islice(api.iterate_submissions(adapter=adapter, state=state), limit))
    if as_json:
        session.output.document(json.dumps([item.document for item in found], indent=2) + "\n")
        return
    table = make_table(("version", "state", "suite", "base model", "created", "id"))
    for item in found:
        table.add_row(
            safe(item.reference),
            safe(item.state, STATE_STYLES.get(item.state, "")),
            safe(item.suite),
            safe(item.base_model),
            safe(item.created_at or "-"),
            safe(item.id),
        )
    session.output.result(table if found else "no submissions")


@submissions_app.command("cancel")
def cancel_command(context: typer.Context, submission: SubmissionArgument) -> None:
    """Stop a submission that is under way."""
    session = session_of(context)
    with session.open_api() as api:
        found = find_submission(api, submission)
        api.cancel_submission(found.id)
    session.output.result(safe(f"{found.reference} is being cancelled"))


@submissions_app.command("retry")
def retry_command(context: typer.Context, submission: SubmissionArgument) -> None:
    """Start a failed submission again from the step that failed."""
    session: Session = session_of(context)
    with session.open_api() as api:
        found = find_submission(api, submission)
        api.retry_submission(found.id)
    session.output.result(safe(f"{found.reference} goes on; wait with: assay wait {found.id}"))
