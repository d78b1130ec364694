"""The report for a terminal or a CI log, as rich renderables with all foreign text made visible."""

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from client.errors import ErrorDetail
from client.models import Submission
from client.reports.rows import (
    RULE_HEADINGS,
    SET_HEADINGS,
    deciding_rules,
    describe_examples,
    headline,
    iterate_faults,
    list_rule_rows,
    list_set_rows,
    summary_of,
)
from client.safe_text import shorten, visible

STATE_STYLES = {
    "passed": "bold green",
    "succeeded": "green",
    "rejected": "bold red",
    "failed": "bold red",
    "invalid": "bold red",
    "inconclusive": "bold yellow",
    "cancelled": "yellow",
    "skipped": "dim",
}
_SEVERITY_STYLES = {"error": "red", "warning": "yellow", "info": "dim"}
_MAX_EXAMPLE_CHARACTERS = 400


def safe(text: str, style: str = "") -> Text:
    """Return foreign text as one line in which nothing acts: no markup, no control characters."""
    return Text(visible(text), style=style)


def make_table(headings: tuple[str, ...], *, right_aligned: frozenset[str] = frozenset()) -> Table:
    """Return an empty table in the house style."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(
            Text(heading), justify="right" if heading in right_aligned else "left", overflow="fold"
        )
    return table


def render_findings(findings: list[ErrorDetail]) -> Group:
    """Return each fault as a line, with its place and remedy below."""
    lines: list[RenderableType] = []
    for finding in findings:
        head = Text.assemble(
            (finding.severity, _SEVERITY_STYLES.get(finding.severity, "")),
            " ",
            (visible(finding.code), "bold"),
        )
        if finding.where:
            head.append(f" ({visible(finding.where)})")
        head.append(f": {visible(finding.message)}")
        lines.append(head)
        if finding.remedy:
            lines.append(Padding(safe(f"-> {finding.remedy}"), (0, 0, 0, 2)))
    return Group(*lines)


def render_report(submission: Submission) -> Group:
    """Return the whole report: verdict sentence, rules, why, sets, faults, link."""
    parts: list[RenderableType] = [
        Text.assemble(
            (submission.state.upper(), STATE_STYLES.get(submission.state, "bold")),
            " ",
            visible(headline(submission)),
        )
    ]
    if summary_of(submission):
        parts.append(safe(summary_of(submission)))
    if submission.decision is not None:
        parts += ["", _rule_table(submission), *_reasons(submission)]
    set_rows = list_set_rows(submission)
    if set_rows:
        table = make_table(SET_HEADINGS, right_aligned=frozenset(SET_HEADINGS[1:]))
        for row in set_rows:
            table.add_row(*(safe(cell) for cell in row))
        parts += ["", table]
    faults = list(iterate_faults(submission))
    if faults:
        parts += ["", render_findings(faults)]
    parts.append("")
    if submission.report_url:
        parts.append(safe(f"Report: {submission.report_url}"))
    parts.append(safe(f"Submission: {submission.id}"))
    return Group(*parts)


def _rule_table(submission: Submission) -> Table:
    table = make_table(RULE_HEADINGS, right_aligned=frozenset({"observed", "threshold", "n"}))
    for row in list_rule_rows(submission):
        name, outcome, *figures = row.cells()
        table.add_row(
            safe("  " * row.depth + name),
            safe(outcome, STATE_STYLES.get(outcome, "")),
            *(safe(figure) for figure in figures),
        )
    return table


def _reasons(submission: Submission) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for rule in deciding_rules(submission):
        lines.append(
            Text.assemble((visible(rule.name), STATE_STYLES[rule.outcome]), f": {visible(rule.explanation)}")
        )
        examples = describe_examples(rule)
        if examples:
            lines.append(Padding(safe(f"examples: {examples}"), (0, 0, 0, 2)))
    return ["", *lines] if lines else []


def render_example(row: dict[str, object]) -> Group:
    """Return one example result: where it is from, input, reference and output, each shortened."""
    head = f"{row.get('role')} {row.get('example_id')} ({row.get('form')})"
    score = row.get("score")
    if isinstance(score, int | float):
        head += f", score {score:.3f}"
    lines: list[RenderableType] = [safe(head, "bold")]
    messages = row.get("messages")
    if isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        lines.append(_example_line("input", messages[-1].get("content")))
    lines += [_example_line("reference", row.get("reference")), _example_line("output", row.get("output"))]
    return Group(*lines)


def _example_line(label: str, value: object) -> Padding:
    text = "(none)" if value is None else shorten(visible(str(value)), _MAX_EXAMPLE_CHARACTERS)
    return Padding(Text(f"{label}: {text}"), (0, 0, 0, 2))
