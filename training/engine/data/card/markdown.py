"""The dataset card as Markdown, from the report of a preparation. Foreign text stays text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAX_BAR_CHARACTERS = 30
MAX_LISTED_FINDINGS = 40
_ACTIVE = re.compile(r"([\\`*_{}\[\]<>#|~])")
_UNPRINTABLE = re.compile(r"[^\S ]+|[\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def write_card(report: Mapping[str, Any]) -> str:
    """Return the card of a preparation.

    Args:
        report: Content of report.json.
    """
    lines = ["# Dataset card", ""]
    lines += _table(("set", "examples", "verified", "confirmed by a person", "sha256"), _set_rows(report))
    lines += _findings(report["findings"])
    lines += _origin(report)
    lines += _steps(report["steps"])
    lines += _leakage(report["leakage"])
    for role, described in report["sets"].items():
        lines += _contents(role, described["card"])
    lines += _lineage(report)
    return "\n".join(lines).rstrip() + "\n"


def plain(text: object) -> str:
    """Return foreign text for one line or cell: no markup, no line breaks, nothing invisible."""
    return _ACTIVE.sub(r"\\\1", _UNPRINTABLE.sub(" ", str(text)))


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    listed = [f"| {' | '.join(plain(cell) for cell in row)} |" for row in rows]
    if not listed:
        return ["None.", ""]
    return [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *listed, ""]


def _set_rows(report: Mapping[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            role,
            described["num_examples"],
            described["num_verified"],
            described["card"]["num_confirmed"],
            described["sha256"][:12],
        )
        for role, described in report["sets"].items()
    ]


def _findings(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            finding["severity"],
            finding["set"],
            finding["code"],
            finding["where"],
            finding["message"],
            finding["remedy"],
        )
        for finding in findings[:MAX_LISTED_FINDINGS]
    ]
    more = len(findings) - MAX_LISTED_FINDINGS
    tail = [f"And {more} more in report.json.", ""] if more > 0 else []
    return ["## Findings", "", *_table(("severity", "set", "code", "where", "what", "remedy"), rows), *tail]


def _origin(report: Mapping[str, Any]) -> list[str]:
    intake = report["intake"]
    counts = f"{intake['num_rows']} rows: {intake['num_examples']} examples, {intake['num_bad']} bad"
    left_out = f", {intake['num_left_out']} left out as asked" if intake.get("num_left_out") else ""
    rows = intake["reasons"].items()
    return [
        "## Raw files",
        "",
        f"{counts}{left_out}.",
        "",
        *(_table(("reason", "rows"), rows) if rows else ()),
    ]


def _steps(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (
            step["name"],
            step["num_in"],
            step["num_kept"],
            step["num_changed"],
            step["num_flagged"],
            step["num_dropped"],
            ", ".join(f"{reason} {num}" for reason, num in step["reasons"].items()),
        )
        for step in steps
    ]
    headings = ("step", "in", "kept", "changed", "flagged", "dropped", "reasons")
    return ["## Cleaning", "", *_table(headings, rows)]


def _leakage(leakage: Mapping[str, Any]) -> list[str]:
    rows = [(pair["left"], pair["right"], pair["num_exact"], pair["num_near"]) for pair in leakage["matrix"]]
    return ["## Overlap between sets", "", *_table(("set", "with", "exact", "near"), rows)]


def _contents(role: str, card: Mapping[str, Any]) -> list[str]:
    lines = [f"## Set {plain(role)}", ""]
    facts = [("references made by", _counts(card["sources"])), ("scripts", _counts(card["scripts"]))]
    facts += [("origins", _counts(card["origins"])), ("general examples", card["num_general"])]
    facts += [("nothing to change", card["num_unchanged"])]
    lines += _table(("what", "how many"), facts)
    for name, histogram in card["lengths"].items():
        if histogram and histogram["num_values"]:
            lines += [f"### {name.replace('_', ' ')}", "", *_histogram(histogram), ""]
    labels = {**card["fields"], **{f"tag {name}": counts for name, counts in card["tags"].items()}}
    if card["categories"]:
        labels["category"] = card["categories"]
    if labels:
        lines += [
            "### Labels",
            "",
            *_table(("field", "values"), ((k, _counts(v)) for k, v in labels.items())),
        ]
    return lines


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{value or '(empty)'} {num}" for value, num in counts.items()) or "-"


def _histogram(histogram: Mapping[str, Any]) -> list[str]:
    highest = max(histogram["counts"])
    quantiles = ", ".join(f"{name} {value}" for name, value in histogram["quantiles"].items())
    lines = [f"Quantiles: {quantiles}.", "", "```"]
    for index, num in enumerate(histogram["counts"]):
        low, high = histogram["edges"][index], histogram["edges"][index + 1] - 1
        # A bin that holds anything shows at least one mark.
        bar = "#" * -(-num * MAX_BAR_CHARACTERS // highest) if highest else ""
        lines.append(f"{low:>7}-{high:<7} {num:>7} {bar}".rstrip())
    return [*lines, "```"]


def _lineage(report: Mapping[str, Any]) -> list[str]:
    rows = [("raw", file["name"], file["sha256"][:12]) for file in report["inputs"]["sources"]]
    rows += [("recipe", "", report["recipe_digest"][:12]), ("code", report["code_version"], "")]
    rows += [("set", role, described["sha256"][:12]) for role, described in report["sets"].items()]
    return ["## Lineage", "", *_table(("what", "name", "sha256"), rows)]
