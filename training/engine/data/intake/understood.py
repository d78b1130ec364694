"""What raw files were taken for, as values ready for JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.artifacts.findings import Finding, has_errors
from training.engine.data.intake.intake_log import FileReport

LEFT_OUT = "left out"
KEPT = "kept"
SUGGESTED = "suggested"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUnderstanding:
    """What one column is taken for.

    Attributes:
        name: The column.
        meaning: Such as "input", "answer", "id", "tag channel", "adoption", "kept" or "left out"; where the
            shape is not sure also "input (suggested)".
        num_filled: Rows looked at that have something in it: not null, not blank, not an empty list.
        num_rows: Rows looked at.
    """

    name: str
    meaning: str
    num_filled: int
    num_rows: int

    def to_json(self) -> dict[str, Any]:
        """Return the form used in previews."""
        return {
            "name": self.name,
            "meaning": self.meaning,
            "num_filled": self.num_filled,
            "num_rows": self.num_rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderstoodRow:
    """One raw row beside what becomes of it.

    Attributes:
        row: 1-based number of the record.
        raw: Columns and values, long ones cut; for an unreadable row its beginning as a text.
        example: The example, long texts cut; None when the row becomes none.
        outcome: "example"; "suggested" when it would become one by the suggested columns; or the code of
            why it becomes none.
        message: What is wrong with the row; "" when nothing is.
    """

    row: int
    raw: Any
    example: Mapping[str, Any] | None
    outcome: str
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the form used in previews."""
        return {
            "row": self.row,
            "raw": self.raw,
            "example": self.example,
            "outcome": self.outcome,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUnderstanding:
    """What one file is taken for.

    Attributes:
        name: Relative name.
        split: Split it belongs to; None when it belongs to none.
        format: {"name", "reason"}; the name is "" when it is not known.
        encoding: {"name", "confidence", "reason"}; None for tables and where it is not known.
        shape: {"name", "confidence", "reason", "candidates", "suggestion"}; name None when it is not sure.
        columns: All columns; for JSON those of the first rows.
        rows: The first rows, before and after.
        counts: Of the rows looked at, where the shape is not sure by the suggested columns; None when
            nothing could be read.
        findings: What a person should know or do; errors are what ``read_raw`` refuses.
    """

    name: str
    split: str | None = None
    format: Mapping[str, str]
    encoding: Mapping[str, str] | None = None
    shape: Mapping[str, Any] | None = None
    columns: tuple[ColumnUnderstanding, ...] = ()
    rows: tuple[UnderstoodRow, ...] = ()
    counts: FileReport | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def columns_left_out(self) -> tuple[str, ...]:
        """Columns of which nothing becomes part of an example."""
        return tuple(column.name for column in self.columns if column.meaning.startswith(LEFT_OUT))

    def to_json(self) -> dict[str, Any]:
        """Return the form used in previews."""
        return {
            "name": self.name,
            "split": self.split,
            "format": dict(self.format),
            "encoding": None if self.encoding is None else dict(self.encoding),
            "shape": None if self.shape is None else dict(self.shape),
            "columns": [column.to_json() for column in self.columns],
            "columns_left_out": list(self.columns_left_out),
            "examples": [row.to_json() for row in self.rows],
            "counts": None if self.counts is None else self.counts.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """What the raw files of a path are taken for.

    Attributes:
        files: In the order of reading, at most 50.
        num_files: How many there are.
        findings: About all files together.
    """

    files: tuple[FileUnderstanding, ...]
    num_files: int
    findings: tuple[Finding, ...]

    @property
    def is_ready(self) -> bool:
        """Whether nothing stands against reading, as far as was looked."""
        return not has_errors((*self.findings, *(item for file in self.files for item in file.findings)))

    def to_json(self) -> dict[str, Any]:
        """Return the preview: that of the first file, and ``files`` with all of them."""
        first = self.files[0].to_json()
        return {
            **first,
            "is_ready": self.is_ready,
            "num_files": self.num_files,
            "files": [file.to_json() for file in self.files],
            "findings": [*(item.to_json() for item in self.findings), *first["findings"]],
        }
