"""What reading raw files came to: counts by file and reason, notices, and the first bad rows in detail."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.artifacts.findings import Finding
from training.engine.data.intake.rows import BadRow
from training.engine.data.intake.shapes.shape import NOTES

MAX_NOTICES = 200
DEFAULT_MAX_LISTED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What one file came to; ``num_rows = num_examples + num_bad + num_left_out``.

    Attributes:
        name: Relative name.
        format: Such as jsonl.
        encoding: None for tables.
        shape: Name of the shape; None when the file held no readable row.
        split: Split it belongs to; None when it belongs to none.
        num_rows: Records; blank lines are none.
        num_examples: Rows that became examples.
        num_bad: Rows with a fault.
        num_left_out: Rows that the settings leave out.
        reasons: Code to number of bad rows, most frequent first.
        left_out: ``not-adopted`` and ``reworked`` to number of rows.
        notes: Code of ``shape.NOTES`` to number of rows.
    """

    name: str
    format: str
    encoding: str | None
    shape: str | None
    split: str | None
    num_rows: int
    num_examples: int
    num_bad: int
    num_left_out: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            "name": self.name,
            "format": self.format,
            "encoding": self.encoding,
            "shape": self.shape,
            "split": self.split,
            "num_rows": self.num_rows,
            "num_examples": self.num_examples,
            "num_bad": self.num_bad,
            "num_left_out": self.num_left_out,
            "reasons": dict(self.reasons),
            "left_out": dict(self.left_out),
            "notes": dict(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeReport:
    """What all files came to; the counts are sums over the files.

    Attributes:
        files: In the order of reading.
        num_listed_bad_rows: Bad rows that are described one by one.
        notices: What a person should know besides, such as files that were left out.
        num_notices: How many there were; the first 200 are listed.
    """

    files: tuple[FileReport, ...]
    num_listed_bad_rows: int
    notices: tuple[Finding, ...]
    num_notices: int

    @property
    def num_rows(self) -> int:
        """Records of all files."""
        return sum(file.num_rows for file in self.files)

    @property
    def num_examples(self) -> int:
        """Rows that became examples."""
        return sum(file.num_examples for file in self.files)

    @property
    def num_bad(self) -> int:
        """Rows with a fault."""
        return sum(file.num_bad for file in self.files)

    @property
    def num_left_out(self) -> int:
        """Rows that the settings leave out."""
        return sum(file.num_left_out for file in self.files)

    @property
    def reasons(self) -> dict[str, int]:
        """Code to number of bad rows, most frequent first."""
        return _ordered(sum((Counter(file.reasons) for file in self.files), Counter()))

    @property
    def left_out(self) -> dict[str, int]:
        """Reason to number of rows that the settings leave out."""
        return _ordered(sum((Counter(file.left_out) for file in self.files), Counter()))

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            "num_rows": self.num_rows,
            "num_examples": self.num_examples,
            "num_bad": self.num_bad,
            "num_left_out": self.num_left_out,
            "reasons": self.reasons,
            "left_out": self.left_out,
            "num_listed_bad_rows": self.num_listed_bad_rows,
            "files": [file.to_json() for file in self.files],
            "notices": [notice.to_json() for notice in self.notices],
            "num_notices": self.num_notices,
        }


class FileTally:
    """Counts the rows of one file."""

    def __init__(
        self, name: str, *, format: str, encoding: str | None, shape: str | None, split: str | None
    ) -> None:
        self.name = name
        self._format, self._encoding, self._shape, self._split = format, encoding, shape, split
        self.num_examples = 0
        self.reasons: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()

    def report(self) -> FileReport:
        """Return the counts so far."""
        num_bad, num_left_out = self.reasons.total(), self.left_out.total()
        return FileReport(
            name=self.name,
            format=self._format,
            encoding=self._encoding,
            shape=self._shape,
            split=self._split,
            num_rows=self.num_examples + num_bad + num_left_out,
            num_examples=self.num_examples,
            num_bad=num_bad,
            num_left_out=num_left_out,
            reasons=_ordered(self.reasons),
            left_out=_ordered(self.left_out),
            notes=_ordered(self.notes),
        )


class IntakeLog:
    """Collects counts, notices and bad rows of one reading; its memory is bounded.

    Args:
        max_listed: Bad rows kept in detail; the others are counted.
    """

    def __init__(self, max_listed: int = DEFAULT_MAX_LISTED) -> None:
        self._max_listed = max_listed
        self._files: list[FileTally] = []
        self._bad_rows: list[BadRow] = []
        self._notices: list[Finding] = []
        self._num_notices = 0

    @property
    def bad_rows(self) -> tuple[BadRow, ...]:
        """The first bad rows, in the order of reading."""
        return tuple(self._bad_rows)

    def start_file(
        self, name: str, *, format: str, encoding: str | None, shape: str | None, split: str | None
    ) -> FileTally:
        """Begin to count a file."""
        tally = FileTally(name, format=format, encoding=encoding, shape=shape, split=split)
        self._files.append(tally)
        return tally

    def add_bad(self, tally: FileTally, bad_row: BadRow) -> None:
        """Count a bad row and keep it when there is room."""
        tally.reasons[bad_row.code] += 1
        if len(self._bad_rows) < self._max_listed:
            self._bad_rows.append(bad_row)

    def add_notice(self, notice: Finding) -> None:
        """Keep something that a person should know."""
        self._num_notices += 1
        if len(self._notices) < MAX_NOTICES:
            self._notices.append(notice)

    def report(self) -> IntakeReport:
        """Return what was counted so far; complete when the reading is over."""
        files = tuple(tally.report() for tally in self._files)
        noted = [_describe_note(file, code, num) for file in files for code, num in file.notes.items()]
        return IntakeReport(
            files=files,
            num_listed_bad_rows=len(self._bad_rows),
            notices=(*self._notices, *noted)[:MAX_NOTICES],
            num_notices=self._num_notices + len(noted),
        )

    def iterate_bad_row_lines(self) -> Iterator[str]:
        """Yield the lines of ``bad_rows.jsonl``, without line feeds."""
        for bad_row in self._bad_rows:
            yield json.dumps(bad_row.to_json(), ensure_ascii=False)


def _describe_note(file: FileReport, code: str, num_rows: int) -> Finding:
    return Finding.info(code, f"{NOTES[code]} Rows: {num_rows}.", where=file.name)


def _ordered(counts: Counter[str]) -> dict[str, int]:
    # By name within a count, so that equal data gives equal bytes.
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
