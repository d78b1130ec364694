"""One place that knows the forms in which a report can be asked for."""

import json
from enum import StrEnum

from client.models import Submission
from client.reports.junit import render_junit
from client.reports.markdown import render_markdown


class ReportFormat(StrEnum):
    """Forms of a report; ``text`` is for people and drawn by the command line itself."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    MARKDOWN = "markdown"


def render_document(submission: Submission, report_format: ReportFormat) -> str:
    """Return the report as a document for a program.

    Args:
        submission: What to report.
        report_format: Any but ``text``.

    Raises:
        ValueError: The form is ``text``.
    """
    match report_format:
        case ReportFormat.JSON:
            return json.dumps(submission.document, indent=2, ensure_ascii=True) + "\n"
        case ReportFormat.JUNIT:
            return render_junit(submission)
        case ReportFormat.MARKDOWN:
            return render_markdown(submission)
        case ReportFormat.TEXT:
            raise ValueError("The text form is drawn on a console.")
