"""The report as Markdown, for a step summary or a comment at a change. All foreign text is literal."""

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
from client.safe_text import markdown_text, web_link

_INDENT = "&nbsp;&nbsp;"


def render_markdown(submission: Submission) -> str:
    """Return the report as a Markdown document that ends with a line feed."""
    blocks = [f"## Assay: {markdown_text(submission.state)}", markdown_text(headline(submission))]
    if summary_of(submission):
        blocks.append(markdown_text(summary_of(submission)))
    rule_rows = list_rule_rows(submission)
    if rule_rows:
        lines = [
            (
                (_INDENT * row.depth) + markdown_text(row.name),
                *(markdown_text(cell) for cell in row.cells()[1:]),
            )
            for row in rule_rows
        ]
        blocks.append(_table(RULE_HEADINGS, lines))
    blocks += _reasons(submission)
    set_rows = list_set_rows(submission)
    if set_rows:
        blocks.append(_table(SET_HEADINGS, [tuple(map(markdown_text, row)) for row in set_rows]))
    blocks += _faults(submission)
    blocks.append(_footer(submission))
    return "\n\n".join(blocks) + "\n"


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _reasons(submission: Submission) -> list[str]:
    lines = []
    for rule in deciding_rules(submission):
        head = f"- **{markdown_text(rule.name)}** ({markdown_text(rule.outcome)})"
        line = f"{head}: {markdown_text(rule.explanation)}"
        examples = describe_examples(rule)
        lines.append(f"{line} Examples: {markdown_text(examples)}" if examples else line)
    return ["\n".join(lines)] if lines else []


def _faults(submission: Submission) -> list[str]:
    lines = []
    for fault in iterate_faults(submission):
        where = f" ({markdown_text(fault.where)})" if fault.where else ""
        remedy = f" *{markdown_text(fault.remedy)}*" if fault.remedy else ""
        lines.append(
            f"- {markdown_text(fault.severity)} **{markdown_text(fault.code)}**{where}: "
            f"{markdown_text(fault.message)}{remedy}"
        )
    return ["\n".join(lines)] if lines else []


def _footer(submission: Submission) -> str:
    link = web_link(submission.report_url)
    report = f"[Report]({link}) · " if link else ""
    return f"{report}Submission {markdown_text(submission.id)}"
