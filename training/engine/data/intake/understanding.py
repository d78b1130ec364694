"""A look at raw files before they are read: what they were taken for, how sure that is, and the first rows
before and after.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from registry.artifacts.findings import Finding, shown, shown_list
from training.engine.data.intake.building import ExampleBuilder, find_meanings
from training.engine.data.intake.encodings import TextEncoding
from training.engine.data.intake.ids import UsedIds
from training.engine.data.intake.intake_log import FileReport, FileTally
from training.engine.data.intake.known_fields import KNOWN_KEYS
from training.engine.data.intake.planning import (
    NUM_SAMPLED_ROWS,
    FilePlan,
    Sample,
    check_plan,
    make_error,
    plan_file,
    readable,
)
from training.engine.data.intake.rows import FileRefused, RawRow, RowFault, UnreadableRow
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.shapes.columns import ColumnsShape
from training.engine.data.intake.shapes.shape import NOTES
from training.engine.data.intake.sources import SourceFile, list_sources
from training.engine.data.intake.understood import (
    KEPT,
    LEFT_OUT,
    SUGGESTED,
    ColumnUnderstanding,
    FileUnderstanding,
    Understanding,
    UnderstoodRow,
)

NUM_SHOWN_ROWS = 5
MAX_SHOWN_CHARS = 400
MAX_SHOWN_ITEMS = 20
MAX_UNDERSTOOD_FILES = 50
MAX_SURVEY_BYTES = 64 << 20
"""The encoding is judged by so much of a file here, and by all of it when it is read."""
MANY_BAD_FRACTION = 0.1
"""From this part of bad rows on, a preview warns; below, it only counts."""


def understand(path: Path, settings: IntakeSettings, *, num_rows: int = NUM_SAMPLED_ROWS) -> Understanding:
    """Look at the first rows of raw files and say what they are taken for.

    Args:
        path: As for ``reading.read_raw``.
        settings: What is stated so far.
        num_rows: Readable rows to look at in each file.

    Raises:
        DataInvalid: ``intake-refused`` when the path holds no file that could be looked at. Faults of a
            single file are findings.
    """
    try:
        sources, notices = list_sources(path, settings)
    except FileRefused as refused:
        raise make_error([refused.at(path.name)]) from refused
    files = tuple(_understand_file(source, settings, num_rows) for source in sources[:MAX_UNDERSTOOD_FILES])
    return Understanding(
        files=files, num_files=len(sources), findings=(*notices, *_compare_files(files, len(sources)))
    )


def _understand_file(source: SourceFile, settings: IntakeSettings, num_rows: int) -> FileUnderstanding:
    is_small = not source.is_gzip and source.path.stat().st_size <= MAX_SURVEY_BYTES
    max_bytes = None if is_small else MAX_SURVEY_BYTES
    try:
        plan, sample = plan_file(source, settings, num_rows=num_rows, max_survey_bytes=max_bytes)
    except FileRefused as refused:
        return FileUnderstanding(
            name=source.name,
            split=source.split,
            format={"name": source.format if source.format != "auto" else "", "reason": "by name or stated"},
            findings=(_as_finding(refused.at(source.name)),),
        )
    rows, counts = _read_sample(plan, sample, settings)
    columns = tuple(_describe_columns(plan, sample, settings))
    encoding, choice = plan.opened.encoding, plan.choice
    return FileUnderstanding(
        name=source.name,
        split=source.split,
        format={"name": plan.opened.format, "reason": plan.opened.format_reason},
        encoding=None if encoding is None else _describe_encoding(encoding),
        shape={
            "name": choice.shape.name if choice.shape else None,
            "confidence": choice.confidence,
            "reason": choice.reason,
            "candidates": [candidate.to_json() for candidate in choice.candidates],
            "suggestion": dict(choice.suggestion),
        },
        columns=columns,
        rows=rows,
        counts=counts,
        findings=tuple(_find_remarks(plan, settings, columns, counts)),
    )


def _describe_encoding(encoding: TextEncoding) -> dict[str, str]:
    return {"name": encoding.name, "confidence": encoding.confidence, "reason": encoding.reason}


def _read_sample(
    plan: FilePlan, sample: Sample, settings: IntakeSettings
) -> tuple[tuple[UnderstoodRow, ...], FileReport]:
    choice, encoding = plan.choice, plan.opened.encoding
    shape = choice.shape or (ColumnsShape(choice.suggestion) if choice.suggestion else None)
    tally = FileTally(
        plan.source.name,
        format=plan.opened.format,
        encoding=encoding.name if encoding else None,
        shape=choice.shape.name if choice.shape else None,
        split=plan.source.split,
    )
    builder = ExampleBuilder(shape, settings, plan.context) if shape else None
    ids = UsedIds()
    rows: list[UnderstoodRow] = []
    for row in sample:
        understood = _understand_row(row, builder, ids, tally)
        if choice.shape is None and understood.example is not None:
            understood = replace(understood, outcome=SUGGESTED)
        if len(rows) < NUM_SHOWN_ROWS:
            rows.append(understood)
    return tuple(rows), tally.report()


def _understand_row(
    row: RawRow | UnreadableRow, builder: ExampleBuilder | None, ids: UsedIds, tally: FileTally
) -> UnderstoodRow:
    raw = row.excerpt if isinstance(row, UnreadableRow) else cut(row.values)
    try:
        if isinstance(row, UnreadableRow):
            raise row.fault
        if builder is None:
            raise RowFault("shape-unknown", "the shape of the file is not known")
        reason = builder.find_reason_to_leave_out(row.values)
        if reason is not None:
            tally.left_out[reason] += 1
            return UnderstoodRow(row=row.number, raw=raw, example=None, outcome=reason)
        built = builder.build(row.values, row.number)
        first = ids.add(built.example.example_id, 0, row.number)
        if first is not None:
            raise RowFault("duplicate-id", f"the id was already used in row {first[1]}")
    except RowFault as fault:
        tally.reasons[fault.code] += 1
        return UnderstoodRow(row=row.number, raw=raw, example=None, outcome=fault.code, message=fault.message)
    tally.notes.update(built.notes)
    tally.num_examples += 1
    return UnderstoodRow(row=row.number, raw=raw, example=cut(built.example.to_json()), outcome="example")


def cut(value: Any, *, depth: int = 4) -> Any:
    """Return a JSON value small enough to be shown: long texts, lists and objects cut, deep ones replaced."""
    if isinstance(value, str):
        return value if len(value) <= MAX_SHOWN_CHARS else value[: MAX_SHOWN_CHARS - 1] + "…"
    if isinstance(value, Mapping):
        if depth == 0:
            return "{…}"
        items = list(value.items())[:MAX_SHOWN_ITEMS]
        return {str(key)[:MAX_SHOWN_CHARS]: cut(item, depth=depth - 1) for key, item in items}
    if isinstance(value, list | tuple):
        return "[…]" if depth == 0 else [cut(item, depth=depth - 1) for item in value[:MAX_SHOWN_ITEMS]]
    return value


def _describe_columns(
    plan: FilePlan, sample: Sample, settings: IntakeSettings
) -> Iterator[ColumnUnderstanding]:
    rows = readable(sample)
    suggested = {column: f"{meaning} ({SUGGESTED})" for meaning, column in plan.choice.suggestion.items()}
    meanings = {**suggested, **find_meanings(plan.choice.shape, settings)}
    filters = {
        item.column: name
        for name, item in (("adoption", settings.adoption), ("rework", settings.rework))
        if item is not None
    }
    for name in plan.columns_seen:
        meaning = meanings.get(name) or _find_own_meaning(name, plan, settings)
        if name in filters:
            meaning = f"{filters[name]}, {meaning}" if meaning != LEFT_OUT else filters[name]
        num_filled = sum(not _is_blank(row.get(name)) for row in rows)
        yield ColumnUnderstanding(name=name, meaning=meaning, num_filled=num_filled, num_rows=len(rows))
    table = plan.opened.table
    for name, reason in (table.unread if table else {}).items():
        yield ColumnUnderstanding(
            name=name, meaning=f"{LEFT_OUT}: {reason}", num_filled=0, num_rows=len(rows)
        )


def _find_own_meaning(name: str, plan: FilePlan, settings: IntakeSettings) -> str:
    """Return the meaning of a column that nothing stated or found gives one."""
    if name in settings.keep:
        return KEPT
    if name in ("id", "origin", *KNOWN_KEYS):
        other = settings.columns.get(name)
        return name if other is None else f"{LEFT_OUT}: {name} is read from {shown(other)}"
    return LEFT_OUT if plan.opened.columns is not None or name == "messages" else KEPT


def _is_blank(value: Any) -> bool:
    return value is None or value in ("", [], {}) or (isinstance(value, str) and not value.strip())


def _find_remarks(
    plan: FilePlan, settings: IntakeSettings, columns: Sequence[ColumnUnderstanding], counts: FileReport
) -> Iterator[Finding]:
    name = plan.source.name
    try:
        check_plan(plan, settings)
    except FileRefused as refused:
        yield _as_finding(refused.at(name))
    yield from plan.opened.notices
    if not plan.num_sampled:
        yield Finding.warning("file-empty", "The file holds no row.", where=name)
        return
    yield from _remark_columns(columns, settings, name)
    for code, num in counts.notes.items():
        yield Finding.info(code, f"{NOTES[code]} Rows: {num} of the first {counts.num_rows}.", where=name)
    if plan.choice.shape and counts.num_bad:
        listed = ", ".join(f"{code}: {num}" for code, num in counts.reasons.items())
        message = f"{counts.num_bad} of the first {counts.num_rows} rows are bad ({listed})."
        is_many = counts.num_bad >= MANY_BAD_FRACTION * counts.num_rows
        yield (Finding.warning if is_many else Finding.info)("bad-rows", message, where=name)


def _remark_columns(
    columns: Sequence[ColumnUnderstanding], settings: IntakeSettings, where: str
) -> Iterator[Finding]:
    for column in columns:
        if column.num_rows and not column.num_filled and not column.meaning.startswith((LEFT_OUT, KEPT)):
            message = f"Column {shown(column.name)!r} ({column.meaning}) is empty in all rows looked at."
            yield Finding.warning("column-empty", message, where=where)
    left_out = [column.name for column in columns if column.meaning.startswith(LEFT_OUT)]
    if left_out:
        message = f"Columns left out: {shown_list(left_out, limit=12)}."
        remedy = "List those that examples shall have in keep, or give them a meaning in columns or tags."
        yield Finding.info("columns-left-out", message, where=where, remedy=remedy)
    meanings = {column.meaning for column in columns if column.num_filled}
    is_stated = settings.reference_source is not None or settings.confirmed_by is not None
    if not is_stated and not meanings & {"reference_source", "confirmed_by"}:
        message = "No row says who made or confirmed its reference; such references do not count as verified."
        remedy = "State reference_source or confirmed_by where that is known (MISSION F4)."
        yield Finding.info("references-unverified", message, where=where, remedy=remedy)


def _compare_files(files: Sequence[FileUnderstanding], num_files: int) -> Iterator[Finding]:
    if num_files > len(files):
        message = f"{num_files - len(files)} further files were not looked at."
        yield Finding.info("files-not-looked-at", message)
    shapes = {file.shape["name"] for file in files if file.shape is not None and file.shape["name"]}
    if len(shapes) > 1:
        message = f"The files have different shapes: {', '.join(sorted(shapes))}."
        yield Finding.warning("files-differ", message, remedy="Look whether all of them belong together.")


def _as_finding(refused: FileRefused) -> Finding:
    fault = refused.fault
    message = fault.message[:1].upper() + fault.message[1:]
    return replace(
        Finding.error(fault.code, f"{message}.", where=fault.where or None), remedy=fault.remedy or None
    )
