"""How raw files were understood, made ready for the page."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from registry.visible_text import visible_text
from training.engine.errors import Fault
from training.services.understandings import RawUnderstanding

MAX_VALUE_CHARACTERS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """One raw row beside the example that it becomes; `messages` are empty when it becomes none."""

    number: int
    raw: tuple[tuple[str, SafeString], ...]
    messages: tuple[tuple[str, SafeString], ...]
    fields: tuple[tuple[str, SafeString], ...]
    outcome: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    """One file: what it was taken for and its first rows."""

    name: str
    facts: tuple[tuple[str, str], ...]
    columns: tuple[Mapping[str, Any], ...]
    rows: tuple[ShownRow, ...]
    findings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownUnderstanding:
    """All files. `column_names` are offered where a column is asked for."""

    is_ready: bool
    is_too_large: bool
    num_files: int
    files: tuple[ShownFile, ...]
    faults: tuple[Fault, ...]
    column_names: tuple[str, ...]


def show_understanding(understanding: RawUnderstanding) -> ShownUnderstanding:
    """The understanding as the template shows it."""
    document = understanding.document or {}
    files: tuple[Mapping[str, Any], ...] = tuple(document.get("files") or ())
    names = (column["name"] for file in files for column in file["columns"])
    return ShownUnderstanding(
        is_ready=bool(document.get("is_ready")),
        is_too_large=understanding.is_too_large,
        num_files=document.get("num_files", 0),
        files=tuple(_show_file(file) for file in files),
        faults=understanding.faults,
        column_names=tuple(dict.fromkeys(names)),
    )


def suggested_columns(understanding: RawUnderstanding) -> dict[str, str]:
    """Meaning to column, as the first file suggests them where its shape is not sure; empty otherwise."""
    files = (understanding.document or {}).get("files") or ()
    shape = files[0]["shape"] if files else None
    if not shape or shape["name"] is not None:
        return {}
    return dict(shape.get("suggestion") or {})


def _show_file(file: Mapping[str, Any]) -> ShownFile:
    return ShownFile(
        name=file["name"],
        facts=tuple(_facts(file)),
        columns=tuple(file["columns"]),
        rows=tuple(_show_row(row) for row in file["examples"]),
        findings=tuple(file["findings"]),
    )


def _facts(file: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was found out, each with how sure that is and why."""
    for label in ("format", "encoding", "shape"):
        found = file.get(label)
        if found is None:
            continue
        name = found.get("name") or "not known"
        confidence = f" ({found['confidence']})" if found.get("confidence") else ""
        reason = f": {found['reason']}" if found.get("reason") else ""
        yield label, f"{name}{confidence}{reason}"
    if file.get("split"):
        yield "split", file["split"]
    counts = file.get("counts")
    if counts:
        left_out = f", {counts['num_left_out']} left out as asked" if counts["num_left_out"] else ""
        yield (
            "rows looked at",
            f"{counts['num_rows']}: {counts['num_examples']} examples, {counts['num_bad']} bad{left_out}",
        )


def _show_row(row: Mapping[str, Any]) -> ShownRow:
    raw, example = row["raw"], row["example"] or {}
    return ShownRow(
        number=row["row"],
        raw=tuple(_pairs(raw)) if isinstance(raw, Mapping) else (("", _shown(raw)),),
        messages=tuple((item["role"], _shown(item["content"])) for item in example.get("messages", ())),
        fields=tuple(_pairs({name: value for name, value in example.items() if name != "messages"})),
        outcome=row["outcome"],
        message=row["message"],
    )


def _pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, SafeString]]:
    for name, value in values.items():
        yield name, _shown(value)


def _shown(value: Any) -> SafeString:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible_text(text, limit=MAX_VALUE_CHARACTERS)
