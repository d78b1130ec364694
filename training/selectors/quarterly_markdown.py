"""The quarterly review as Markdown.

Titles and texts that people or models wrote stay text: no markup, no HTML, no links, no mentions.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from training.selectors.quarterly import ListedIncident, ListedRow, QuarterReview

MAX_CELL_CHARACTERS: Final = 300
_ACTIVE: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|~>$@:])")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def write_review(review: QuarterReview) -> str:
    """Return the review as a Markdown document that ends with a line feed."""
    lines = [f"# Incidents of {review.quarter}", "", *_summary(review)]
    counts = [
        (
            item.code or "(no row)",
            item.symptom,
            item.num_opened,
            item.num_resolved,
            "new" if item.is_new else "",
        )
        for item in review.by_symptom
    ]
    lines += _section("By symptom", ("row", "symptom", "opened", "resolved", ""), counts)
    lines += _section("Seen for the first time", ("row", "symptom"), _rows(review.new_symptoms))
    lines += _section("Rows that people added", ("row", "symptom"), _rows(review.rows_added))
    lines += _section("Rows to add", _INCIDENT_HEADINGS, _incidents(review.rows_to_add))
    repeated = [
        (item.code, item.num_occurrences, ", ".join(str(number) for number in item.incidents))
        for item in review.repeated
    ]
    lines += _section("Repeated, and no check yet", ("row", "times in 180 days", "asked in"), repeated)
    lines += _section("Not closed", _INCIDENT_HEADINGS, _incidents(review.open_incidents))
    lines += _section("Never occurred", ("row", "symptom"), _rows(review.never_occurred))
    return "\n".join(lines).rstrip() + "\n"


def literal(text: object) -> str:
    r"""Return foreign text as literal Markdown for one line or cell.

    >>> literal("a|b\n<b>")
    'a\\|b &lt;b&gt;'
    """
    one_line = " ".join(str(text).split())
    if len(one_line) > MAX_CELL_CHARACTERS:
        one_line = one_line[: MAX_CELL_CHARACTERS - 1] + "…"
    seen = "".join(map(_visible, one_line))
    escaped = _ACTIVE.sub(r"\\\1", seen.replace("&", "&amp;").replace("<", "&lt;"))
    return escaped.replace("\\>", "&gt;")


def word_duration(seconds: float | None) -> str:
    """A duration as people say it: "2.5 hours"; "-" for None."""
    if seconds is None:
        return "-"
    for size, unit in ((86_400, "days"), (3_600, "hours")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60:.0f} minutes"


_INCIDENT_HEADINGS: Final = ("number", "title", "row", "state")


def _visible(character: str) -> str:
    if unicodedata.category(character) in _HIDDEN:
        return character.encode("unicode_escape").decode("ascii")
    return character


def _summary(review: QuarterReview) -> list[str]:
    begins, ends = (
        f"{moment:%Y-%m-%d %H:%M} UTC" for moment in (review.quarter.begins_at, review.quarter.ends_at)
    )
    return [
        f"From {begins} until before {ends}.",
        "",
        f"- opened: {review.num_opened} ({review.num_dismissed} of them dismissed)",
        f"- resolved: {review.num_resolved}, median time {word_duration(review.median_seconds_to_resolve)}",
        f"- not closed at the end: {review.num_open}",
        "",
    ]


def _rows(rows: Iterable[ListedRow]) -> list[tuple[object, ...]]:
    return [(row.code, row.symptom) for row in rows]


def _incidents(incidents: Iterable[ListedIncident]) -> list[tuple[object, ...]]:
    return [(item.number, item.title, item.symptom or "(no row)", item.state) for item in incidents]


def _section(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    listed = [f"| {' | '.join(literal(cell) for cell in row)} |" for row in rows]
    table = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *listed] if listed else ["None."]
    return [f"## {title}", "", *table, ""]
