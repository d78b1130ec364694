"""Options that several commands share, so that they are spelled and explained the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from client.cli.session import Session
from client.errors import AssayError, UsageError
from client.models import Submission
from client.reports.render import ReportFormat, render_document
from client.reports.text import render_report

TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", min=0.0, help="Longest wait in seconds; without it there is no limit."),
]
FormatOption = Annotated[ReportFormat, typer.Option("--output", "-o", help="Form of the report.")]
OutputFileOption = Annotated[
    Path | None,
    typer.Option(
        "--output-file",
        dir_okay=False,
        help="Write the report there; the text form then goes to standard output.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the server's answer as JSON.")]


def write_report(
    session: Session, submission: Submission, report_format: ReportFormat, output_file: Path | None
) -> None:
    """Write a report in the form and to the place that were asked for.

    Raises:
        UsageError: ``output_file`` with the text form.
        AssayError: The file cannot be written.
    """
    if output_file is not None:
        require_output_form(report_format, output_file)
        try:
            output_file.parent.mkdir(parents=True, exist_ok=True)
            output_file.write_text(render_document(submission, report_format), encoding="utf-8")
        except OSError as error:
            raise AssayError(
                "output-file-unwritable", f"{output_file} cannot be written: {error.strerror or error}."
            ) from error
    elif report_format is not ReportFormat.TEXT:
        session.output.document(render_document(submission, report_format))
        return
    session.output.result(render_report(submission))


def require_output_form(report_format: ReportFormat, output_file: Path | None) -> None:
    """Refuse a combination that cannot be meant, before any work is done for it."""
    if output_file is not None and report_format is ReportFormat.TEXT:
        raise UsageError(
            "output-form-missing",
            "--output-file needs --output json, junit or markdown to say what goes into it.",
        )


def split_reference(reference: str, noun: str) -> tuple[str, int]:
    """Split "name@number".

    Raises:
        UsageError: It is of another form.
    """
    name, separator, number = reference.rpartition("@")
    if not separator or not name or not (number.isascii() and number.isdigit()):
        raise UsageError("invalid-reference", f"'{reference}' should name {noun} like tickets@3.")
    return name, int(number)
