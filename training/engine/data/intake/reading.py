"""Reading raw files as examples: a stream, every row accounted for (examples, bad rows, rows left out)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from registry.artifacts.findings import Finding, shown
from training.engine.data.examples import Example
from training.engine.data.intake.building import ExampleBuilder
from training.engine.data.intake.ids import UsedIds
from training.engine.data.intake.intake_log import FileTally, IntakeLog, IntakeReport
from training.engine.data.intake.planning import FilePlan, find_missing_columns, make_error, plan_files
from training.engine.data.intake.rows import (
    BadRow,
    FileRefused,
    RawRow,
    RowFault,
    UnreadableRow,
    make_excerpt,
)
from training.engine.data.intake.settings import IntakeSettings

__all__ = ["IntakeLog", "IntakeReport", "read_raw"]


def read_raw(path: Path, settings: IntakeSettings, *, bad_rows: IntakeLog) -> Iterator[Example]:
    """Read a raw file, or the files of a folder one after the other.

    What stands against reading is found before this returns: no example is given of a path that is refused
    for a format, an encoding or a shape. The examples then come as a stream.

    Args:
        path: A file; a folder of files (sorted, formats may differ); or a dataset of Hugging Face on disk.
        settings: What is stated; the rest is found out.
        bad_rows: Takes counts, bad rows and notices; its report is complete when the stream is over.

    Returns:
        The examples, in the order of the files and rows.

    Raises:
        DataInvalid: ``intake-refused`` with a fault for every file; from the stream also when a file turns
            out to be broken further on, or holds more rows than allowed.
    """
    plans, notices = plan_files(path, settings)
    for notice in notices:
        bad_rows.add_notice(notice)
    return _iterate_files(plans, settings, bad_rows)


def _iterate_files(plans: Sequence[FilePlan], settings: IntakeSettings, log: IntakeLog) -> Iterator[Example]:
    reading = _Reading(settings=settings, log=log, names=tuple(plan.source.name for plan in plans))
    for number, plan in enumerate(plans):
        try:
            yield from reading.iterate_examples(plan, number)
        except FileRefused as refused:
            raise make_error([refused.at(plan.source.name)]) from refused


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What the files of one reading share: the ids used, the number of rows."""

    settings: IntakeSettings
    log: IntakeLog
    names: tuple[str, ...]
    num_rows: int = 0
    ids: UsedIds = field(default_factory=UsedIds)

    def iterate_examples(self, plan: FilePlan, file_number: int) -> Iterator[Example]:
        opened, shape = plan.opened, plan.choice.shape
        tally = self.log.start_file(
            plan.source.name,
            format=opened.format,
            encoding=opened.encoding.name if opened.encoding else None,
            shape=shape.name if shape else None,
            split=plan.source.split,
        )
        self._add_notices(plan)
        builder = ExampleBuilder(shape, self.settings, plan.context) if shape else None
        for row in opened.iterate_rows(plan.wanted_columns(self.settings) if shape else None):
            self._count_row()
            try:
                if isinstance(row, UnreadableRow):
                    raise row.fault
                if builder is None:
                    raise RowFault(
                        "shape-unknown", "the file's first rows could not be read, so its shape is not known"
                    )
                example = self._build(builder, row, tally, file_number)
            except RowFault as fault:
                self._add_bad(tally, row, fault)
                continue
            if example is not None:
                tally.num_examples += 1
                yield example

    def _build(
        self, builder: ExampleBuilder, row: RawRow, tally: FileTally, file_number: int
    ) -> Example | None:
        reason = builder.find_reason_to_leave_out(row.values)
        if reason is not None:
            tally.left_out[reason] += 1
            return None
        built = builder.build(row.values, row.number)
        first = self.ids.add(built.example.example_id, file_number, row.number)
        if first is not None:
            file, number = first
            place = f"row {number}" if file == file_number else f"row {number} of {shown(self.names[file])}"
            message = f"the id {shown(built.example.example_id)!r} was already used in {place}"
            raise RowFault("duplicate-id", message)
        tally.notes.update(built.notes)
        return built.example

    def _count_row(self) -> None:
        self.num_rows += 1
        if self.num_rows > self.settings.limits.max_rows:
            message = f"more than {self.settings.limits.max_rows} rows in all"
            raise FileRefused("too-many-rows", message, remedy="Split the data, or raise limits.max_rows.")

    def _add_bad(self, tally: FileTally, row: RawRow | UnreadableRow, fault: RowFault) -> None:
        excerpt = row.excerpt if isinstance(row, UnreadableRow) else make_excerpt(row.values)
        self.log.add_bad(
            tally,
            BadRow(
                file=tally.name,
                row=row.number,
                code=fault.code,
                message=fault.message,
                place=row.place,
                excerpt=excerpt,
            ),
        )

    def _add_notices(self, plan: FilePlan) -> None:
        for notice in plan.opened.notices:
            self.log.add_notice(notice)
        if not plan.num_sampled:
            self.log.add_notice(
                Finding.warning("file-empty", "The file holds no row.", where=plan.source.name)
            )
            return
        missing = find_missing_columns(plan.columns_seen, self.settings)
        if missing:
            message = f"No row of the first {plan.num_sampled} has {', '.join(map(shown, missing))}."
            self.log.add_notice(Finding.warning("column-not-seen", message, where=plan.source.name))
