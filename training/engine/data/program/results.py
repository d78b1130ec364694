"""How results look in a terminal."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from training.engine.data.intake.understood import Understanding
from training.engine.data.program.display import Display

MAX_LISTED_REASONS = 20
MAX_CHARACTERS = 160
MAX_SHOWN_ROWS = 3


def show_understanding(display: Display, understanding: Understanding) -> None:
    """Print how raw files are understood: format, encoding, shape, columns, first examples."""
    for file in understanding.to_json()["files"]:
        encoding, shape = file["encoding"], file["shape"]
        parts = [
            file["format"]["name"],
            encoding and encoding["name"],
            shape and (shape["name"] or "no shape"),
        ]
        display.line(f"{file['name']}: {', '.join(str(part) for part in parts if part)}", "bold")
        if shape:
            display.line(f"  {shape['confidence']}: {shape['reason']}")
            if suggestion := shape.get("suggestion"):
                columns = " ".join(f"--column {meaning}={name}" for meaning, name in suggestion.items())
                display.line(f"  suggested: {columns}", "yellow")
        meanings = [f"{column['name']} -> {column['meaning']}" for column in file["columns"]]
        display.line(f"  columns: {', '.join(meanings) or 'none'}")
        for row in file["examples"][:MAX_SHOWN_ROWS]:
            shown = json.dumps(row["example"] or row["message"], ensure_ascii=False)
            display.line(f"  row {row['row']}: {_cut(shown)}")
    for finding in understanding.findings:
        display.line(f"{finding.severity}: {finding.message}", "dim")
    display.line()


def show_preparation(display: Display, report: Mapping[str, Any]) -> None:
    """Print what came in, what each step did, what came out and what was found."""
    intake = report["intake"]
    display.line(
        f"{intake['num_rows']} rows: {intake['num_examples']} examples, {intake['num_bad']} bad", "bold"
    )
    for code, num in list(intake["reasons"].items())[:MAX_LISTED_REASONS]:
        display.line(f"  {num} {code}")
    if report["steps"]:
        display.line()
        display.table(
            ("step", "in", "changed", "flagged", "dropped", "reasons"),
            [_step_row(step) for step in report["steps"]],
        )
    display.line()
    display.table(("set", "examples", "verified", "sha256"), _set_rows(report["sets"]))
    show_overlaps(display, report["leakage"])
    display.line()
    display.findings(report["findings"])


def show_overlaps(display: Display, leakage: Mapping[str, Any]) -> None:
    """Print the pairs of sets that overlap; nothing when none does."""
    rows = [
        (pair["left"], pair["right"], pair["num_exact"], pair["num_near"])
        for pair in leakage["matrix"]
        if pair["num_exact"] or pair["num_near"]
    ]
    if rows:
        display.line()
        display.line("Overlap between sets", "bold red")
        display.table(("set", "with", "exact", "near"), rows)


def _step_row(step: Mapping[str, Any]) -> tuple[object, ...]:
    reasons = ", ".join(f"{reason} {num}" for reason, num in step["reasons"].items())
    return (
        step["name"],
        step["num_in"],
        step["num_changed"],
        step["num_flagged"],
        step["num_dropped"],
        reasons,
    )


def _set_rows(sets: Mapping[str, Mapping[str, Any]]) -> Sequence[tuple[object, ...]]:
    return [
        (role, described["num_examples"], described["num_verified"], described["sha256"][:12])
        for role, described in sets.items()
    ]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…"
