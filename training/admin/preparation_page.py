"""The report of a preparation made ready for its page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.safestring import SafeString

from registry.marked_text import mark_tokens
from registry.models import DatasetVersion
from registry.visible_text import visible_text
from training.admin.card_page import Contents, build_contents
from training.admin.following import flat_rows
from training.models import DataPreparation
from training.selectors.preparations import BAD_ROWS_FILE, read_first_rows, read_report

MAX_SHOWN_FINDINGS: Final = 100
MAX_SHOWN_BAD_ROWS: Final = 50
MAX_SHOWN_LEAKS: Final = 50
MAX_EXCERPT_CHARACTERS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRow:
    """One set with the dataset version that it became; None while it is not registered."""

    role: str
    version: DatasetVersion | None
    num_examples: int
    num_verified: int
    num_confirmed: int
    sha256: str
    contents: Contents


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """One example before and after a step; `parts` are (what, before, after) as marked HTML, after empty when
    it was dropped.
    """

    example_id: str
    reasons: str
    detail: str
    is_dropped: bool
    parts: tuple[tuple[str, SafeString, SafeString], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One cleaning step: its counts, its reasons, and a few examples of what it did."""

    name: str
    num_in: int
    num_kept: int
    num_changed: int
    num_flagged: int
    num_dropped: int
    reasons: tuple[tuple[str, int], ...]
    settings: tuple[tuple[str, str], ...]
    changes: tuple[ShownChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageRow:
    """One row of the matrix: a set against every other one. A cell is (exact, near), None where the set meets
    itself or was not compared.
    """

    name: str
    cells: tuple[tuple[int, int] | None, ...]


def build_report_context(preparation: DataPreparation) -> dict[str, Any]:
    """What the page shows of report.json and the files beside it; empty before there is a report."""
    if preparation.report_id is None:
        return {}
    report = read_report(preparation)
    pairs: Sequence[Mapping[str, Any]] = (report.get("leakage") or {}).get("matrix") or ()
    names, matrix = _leakage_matrix(pairs)
    findings = report.get("findings") or ()
    return {
        "report": report,
        "set_rows": tuple(_set_rows(preparation, report)),
        "findings": findings[:MAX_SHOWN_FINDINGS],
        "num_more_findings": max(len(findings) - MAX_SHOWN_FINDINGS, 0),
        "step_rows": tuple(_step_row(step) for step in report.get("steps") or ()),
        "intake": report.get("intake") or {},
        "bad_rows": read_first_rows(preparation, BAD_ROWS_FILE, limit=MAX_SHOWN_BAD_ROWS),
        "leakage_names": names,
        "leakage_matrix": matrix,
        "leaks": tuple(_leaks(pairs))[:MAX_SHOWN_LEAKS],
        "division_rows": tuple(_division_rows(report)),
        "recipe_text": json.dumps(report.get("recipe") or preparation.recipe, indent=2, ensure_ascii=False),
    }


def _set_rows(preparation: DataPreparation, report: Mapping[str, Any]) -> Iterator[SetRow]:
    versions = {item.role: item.dataset_version for item in preparation.sets.all()}
    for role, described in report["sets"].items():
        card = described.get("card") or {}
        yield SetRow(
            role=role,
            version=versions.get(role),
            num_examples=described.get("num_examples", 0),
            num_verified=described.get("num_verified", 0),
            num_confirmed=card.get("num_confirmed", 0),
            sha256=described.get("sha256", ""),
            contents=build_contents(card),
        )


def _step_row(step: Mapping[str, Any]) -> StepRow:
    facts = {"measured": step["facts"]} if step.get("facts") else {}
    return StepRow(
        name=step["name"],
        num_in=step["num_in"],
        num_kept=step["num_kept"],
        num_changed=step["num_changed"],
        num_flagged=step["num_flagged"],
        num_dropped=step["num_dropped"],
        reasons=tuple(step["reasons"].items()),
        settings=tuple(flat_rows({**(step.get("parameters") or {}), **facts})),
        changes=tuple(_shown_change(shown) for shown in step.get("shown") or ()),
    )


def _shown_change(shown: Mapping[str, Any]) -> ShownChange:
    before, after = shown["before"], shown["after"]
    return ShownChange(
        example_id=shown["example_id"],
        reasons=", ".join(shown["reasons"]),
        detail=shown.get("detail") or "",
        is_dropped=after is None,
        parts=tuple(_changed_parts(before, after)),
    )


def _changed_parts(
    before: Mapping[str, str], after: Mapping[str, str] | None
) -> Iterator[tuple[str, SafeString, SafeString]]:
    for name, text in before.items():
        changed = None if after is None else after.get(name, "")
        marked = SafeString("") if changed in (None, text) else mark_tokens(str(changed), text)
        yield name, visible_text(text, limit=MAX_EXCERPT_CHARACTERS), marked


def _leakage_matrix(pairs: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[LeakageRow, ...]]:
    names = tuple(dict.fromkeys(str(pair[side]) for side in ("left", "right") for pair in pairs))
    counts = {
        (str(pair["left"]), str(pair["right"])): (pair["num_exact"], pair["num_near"]) for pair in pairs
    }
    rows = tuple(
        LeakageRow(
            name=name,
            cells=tuple(counts.get((name, other)) or counts.get((other, name)) for other in names),
        )
        for name in names
    )
    return names, rows


def _leaks(pairs: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The single pairs of examples that overlap, each with the names of its two sets."""
    for pair in pairs:
        for leak in pair.get("pairs") or ():
            yield {**leak, "left": pair["left"], "right": pair["right"]}


def _division_rows(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("split", "mix"):
        part = report.get(name)
        if isinstance(part, Mapping):
            yield from flat_rows(part, f"{name}.")
