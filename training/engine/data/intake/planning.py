"""What is settled before the first example: files, formats, encodings, shapes, and what stands against."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from registry.artifacts.findings import Finding, shown, shown_list
from training.engine.data.intake.building import FileContext, find_meanings
from training.engine.data.intake.known_fields import KNOWN_KEYS
from training.engine.data.intake.opening import OpenedFile, open_source
from training.engine.data.intake.rows import FileRefused, RawRow, UnreadableRow, count_characters
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.shapes.detection import ShapeChoice, choose_shape
from training.engine.data.intake.sources import SourceFile, list_sources
from training.engine.errors import DataInvalid, Fault

NUM_SAMPLED_ROWS = 200
"""Readable rows that the shape is judged by."""
MAX_SAMPLED_RECORDS = 10_000
"""Records that are looked through for them."""
MAX_SAMPLED_CHARACTERS = 16 << 20
"""The sample ends with the row that passes this, so that long rows do not fill the memory."""
MAX_LISTED_FAULTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlan:
    """One file, ready to be read.

    Attributes:
        opened: How it is read.
        choice: Its shape.
        columns_seen: Its columns; for JSON those of its first rows.
        num_sampled: Records that were looked at.
        first_fault: Why the first record cannot be read; "" when it can.
    """

    opened: OpenedFile
    choice: ShapeChoice
    columns_seen: tuple[str, ...]
    num_sampled: int
    first_fault: str

    @property
    def source(self) -> SourceFile:
        """The file."""
        return self.opened.source

    @property
    def context(self) -> FileContext:
        """What its examples share."""
        source = self.source
        return FileContext(
            name=source.name,
            stem=source.stem,
            split=source.split,
            is_general=source.is_general,
            keeps_all=self.opened.columns is None,
        )

    def wanted_columns(self, settings: IntakeSettings) -> frozenset[str]:
        """Return the columns that examples are made of."""
        return frozenset(
            (
                *find_meanings(self.choice.shape, settings),
                *settings.mapped_columns,
                *settings.keep,
                *KNOWN_KEYS,
                "id",
                "origin",
            )
        )


Sample = tuple[RawRow | UnreadableRow, ...]
"""The first records of a file."""


def readable(sample: Iterable[RawRow | UnreadableRow]) -> list[Mapping[str, Any]]:
    """Return the columns and values of the rows that could be read."""
    return [row.values for row in sample if isinstance(row, RawRow)]


def plan_files(path: Path, settings: IntakeSettings) -> tuple[tuple[FilePlan, ...], tuple[Finding, ...]]:
    """Settle how the files of a path are read.

    Args:
        path: A file or a folder.
        settings: What is stated.

    Returns:
        The plans in the order of reading, and notices about the path.

    Raises:
        DataInvalid: ``intake-refused`` with a fault for every file that cannot be read or is not sure.
    """
    try:
        sources, notices = list_sources(path, settings)
    except FileRefused as refused:
        raise make_error([refused.at(path.name)]) from refused
    plans: list[FilePlan] = []
    refusals: list[FileRefused] = []
    for source in sources:
        try:
            plan, _ = plan_file(source, settings)
            check_plan(plan, settings)
            plans.append(plan)
        except FileRefused as refused:
            refusals.append(refused.at(source.name))
        except OSError as error:
            refusals.append(
                FileRefused("file-unreadable", f"cannot be opened: {error.strerror}").at(source.name)
            )
    if refusals:
        raise make_error(refusals)
    return tuple(plans), notices


def plan_file(
    source: SourceFile,
    settings: IntakeSettings,
    *,
    num_rows: int = NUM_SAMPLED_ROWS,
    max_survey_bytes: int | None = None,
) -> tuple[FilePlan, Sample]:
    """Settle how one file is read, as far as it goes; the shape may stay open. Also give its first records.

    Args:
        source: The file.
        settings: What is stated.
        num_rows: Readable rows to judge the shape by.
        max_survey_bytes: See ``opening.open_source``.

    Raises:
        FileRefused: It cannot be read at all.
    """
    opened = open_source(source, settings, max_survey_bytes=max_survey_bytes)
    sample = _take_sample(opened, num_rows)
    rows = readable(sample)
    columns = opened.columns
    if columns is None:
        columns = tuple(dict.fromkeys(str(name) for row in rows for name in row))
    first = sample[0] if sample else None
    plan = FilePlan(
        opened=opened,
        choice=choose_shape(rows, settings),
        columns_seen=columns,
        num_sampled=len(sample),
        first_fault=first.fault.message if isinstance(first, UnreadableRow) else "",
    )
    return plan, sample


def _take_sample(opened: OpenedFile, num_rows: int) -> Sample:
    sample: list[RawRow | UnreadableRow] = []
    num_readable = num_characters = 0
    for row in islice(opened.iterate_rows(), MAX_SAMPLED_RECORDS):
        sample.append(row)
        if isinstance(row, RawRow):
            num_readable += 1
            num_characters += count_characters(row.values)
        if num_readable == num_rows or num_characters > MAX_SAMPLED_CHARACTERS:
            break
    return tuple(sample)


def check_plan(plan: FilePlan, settings: IntakeSettings) -> None:
    """Refuse a file that lacks a stated column or whose shape is not sure.

    Raises:
        FileRefused: ``column-missing``, ``shape-unsure`` or ``no-readable-row``.
    """
    choice, columns = plan.choice, plan.opened.columns
    # First, because a misspelt column also leaves the shape open, and its name is the better remedy.
    missing = [] if columns is None else find_missing_columns(columns, settings)
    if missing:
        near = [name for item in missing for name in difflib.get_close_matches(item, columns or (), n=1)]
        remedy = (
            f"Did you mean {shown_list(near)}?"
            if near
            else f"Its columns are {shown_list(columns or (), limit=12)}."
        )
        raise FileRefused("column-missing", f"has no column {shown_list(missing)}", remedy=remedy)
    if choice.confidence == "unsure":
        raise FileRefused("shape-unsure", choice.reason, remedy=make_remedy(choice))
    if choice.confidence == "none" and plan.num_sampled == MAX_SAMPLED_RECORDS:
        message = (
            f"none of the first {MAX_SAMPLED_RECORDS} records can be read; the first: {plan.first_fault}"
        )
        raise FileRefused("no-readable-row", message)


def find_missing_columns(columns: Sequence[str], settings: IntakeSettings) -> list[str]:
    """Return the stated columns that are not there, sorted."""
    return sorted({*settings.mapped_columns, *settings.keep} - set(columns))


def make_remedy(choice: ShapeChoice) -> str:
    """Return what to state so that the shape is sure."""
    if choice.suggestion:
        listed = ", ".join(f'"{meaning}": "{shown(column)}"' for meaning, column in choice.suggestion.items())
        return f"If that is meant, state columns: {{{listed}}}."
    return "State shape, or columns with the columns of input and answer."


def make_error(refusals: Sequence[FileRefused]) -> DataInvalid:
    """Return the error that names every file that cannot be read."""
    faults: list[Fault] = [refused.fault for refused in refusals]
    listed = "; ".join(f"{fault.where} {fault.message}" for fault in faults[:5])
    more = f" (and {len(faults) - 5} more)" if len(faults) > 5 else ""
    message = f"{len(faults)} raw file(s) cannot be read: {listed}{more}"
    return DataInvalid("intake-refused", message, faults=faults[:MAX_LISTED_FAULTS])
