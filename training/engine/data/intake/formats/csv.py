"""CSV and TSV: the delimiter found out, records with line breaks inside quotes, faulty records left alone.

The standard library's ``csv.Sniffer`` is not used: its patterns take quadratic time on hostile texts, and it
guesses without saying how sure it is.
"""

import contextlib
import csv
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from registry.artifacts.findings import shown, shown_list
from training.engine.data.intake.formats.text_file import TextFile
from training.engine.data.intake.rows import (
    FileRefused,
    RawRow,
    RowFault,
    UnreadableRow,
    check_storable,
    check_storable_text,
    make_excerpt,
)
from training.engine.data.intake.settings import AUTO, DELIMITERS, IntakeSettings
from training.engine.data.intake.streams import RawLine

MIN_EVEN_FRACTION = 0.8
"""Part of the first records that must be as wide as the header, for a delimiter to fit."""
MAX_COLUMNS = 2000

_NUM_SNIFFED_LINES = 100
_MAX_SNIFFED_CHARS = 1 << 18
_REMEDY = "State delimiter, or write the file again with quotes around texts."


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvLayout:
    """How a CSV file is cut into cells.

    Attributes:
        delimiter: One character.
        columns: Names, each once.
        has_header: Whether the first record is the header.
        reason: Why this delimiter.
    """

    delimiter: str
    columns: tuple[str, ...]
    has_header: bool
    reason: str


def find_csv_layout(file: TextFile, settings: IntakeSettings, *, expects_tabs: bool = False) -> CsvLayout:
    """Find out delimiter and columns from the first lines.

    Args:
        file: With its encoding and limits.
        settings: ``delimiter`` and ``column_names`` win over what is found.
        expects_tabs: Whether the file's name or stated format says that tabs separate; decides between two
            delimiters that fit.

    Raises:
        FileRefused: ``csv-empty``, ``csv-delimiter-unsure``, ``csv-header-invalid`` or ``line-ends-cr``.
        OSError: The file cannot be read.
    """
    lines = _first_lines(file)
    if settings.delimiter != AUTO:
        delimiter, reason = DELIMITERS[settings.delimiter], "stated"
    else:
        delimiter, reason = _sniff(lines, expects_tabs=expects_tabs)
    names = settings.column_names
    if names is None:
        names = _read_header(file, delimiter)
    return CsvLayout(
        delimiter=delimiter, columns=names, has_header=settings.column_names is None, reason=reason
    )


def read_csv(file: TextFile, layout: CsvLayout) -> Iterator[RawRow | UnreadableRow]:
    """Yield the records of a CSV file, cells as texts; the header is none of them.

    A record whose quotes do not fit costs its first line only: reading goes on with the next line.

    Args:
        file: With its encoding and limits; one record is held at a time.
        layout: See ``find_csv_layout``.

    Raises:
        FileRefused: The decompression fails.
        OSError: The file cannot be read.
    """
    records = _iterate_records(file, layout.delimiter)
    if layout.has_header:
        next(records, None)
    for number, record in enumerate(records, start=1):
        place = f"line {record.line}"
        fault = record.fault or _find_cell_fault(record.cells, layout, file.limits.max_cell_bytes)
        if fault is not None:
            yield UnreadableRow(number, fault, place, make_excerpt(record.text))
        else:
            yield RawRow(number, dict(zip(layout.columns, record.cells, strict=True)), place)


@dataclass(frozen=True, slots=True)
class _Record:
    cells: Sequence[str]
    line: int
    text: str
    fault: RowFault | None = None


class _RecordBroken(Exception):
    """A record cannot go on with the next line; carries the fault."""

    def __init__(self, fault: RowFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class _LineFeed:
    """Feeds lines to the parser, remembers those of the present record, and can give them back."""

    def __init__(self, file: TextFile) -> None:
        self._file = file
        self._lines = file.iterate_lines()
        self._waiting: deque[RawLine] = deque()
        self._num_bytes = 0
        self.taken: list[RawLine] = []
        self.texts: list[str] = []
        self.fault: RowFault | None = None

    def start_record(self) -> None:
        self.taken, self.texts, self.fault, self._num_bytes = [], [], None, 0

    def give_back(self) -> None:
        """Let the record be its first line alone."""
        self._waiting.extendleft(reversed(self.taken[1:]))
        del self.taken[1:], self.texts[1:]

    def __iter__(self) -> "_LineFeed":
        return self

    def __next__(self) -> str:
        line = self._waiting.popleft() if self._waiting else next(self._lines)
        self.taken.append(line)
        self._num_bytes += line.num_bytes
        if line.data is None or self._num_bytes > self._file.limits.max_line_bytes:
            self.texts.append("")
            raise _RecordBroken(self._file.too_long(self._num_bytes))
        text = self._decode(line.data, line.offset)
        self.texts.append(text)
        return text

    def _decode(self, data: bytes, offset: int) -> str:
        encoding = self._file.encoding
        try:
            return encoding.decode_line(data, offset)
        except RowFault as fault:
            self.fault = self.fault or fault
        # The row is bad already; the structure of quotes and delimiters still has to be followed.
        return data.decode(encoding.codec, "replace")


def _iterate_records(file: TextFile, delimiter: str) -> Iterator[_Record]:
    """Yield the records that are not blank."""
    # The limit is the process's, not the reader's, and only ever raised: records are bounded by the feed.
    csv.field_size_limit(max(csv.field_size_limit(), file.limits.max_line_bytes))
    feed = _LineFeed(file)
    parser = csv.reader(feed, delimiter=delimiter, strict=True)
    while True:
        feed.start_record()
        fault: RowFault | None = None
        cells: Sequence[str] = ()
        try:
            cells = next(parser)
        except StopIteration:
            return
        except _RecordBroken as broken:
            fault = _blame(feed, broken.fault)
        except csv.Error as error:
            fault = _blame(feed, RowFault("csv-quotes", f"quotes do not fit: {shown(error)}"))
        if cells or fault:
            yield _Record(cells, feed.taken[0].number, _show_lines(feed), fault or feed.fault)


def _blame(feed: _LineFeed, fault: RowFault) -> RowFault:
    """Return the fault of a record that could not be parsed, and leave its further lines to be read anew."""
    if len(feed.taken) == 1:
        return feed.fault or fault
    num_lines = len(feed.taken)
    feed.give_back()
    message = (
        f"a quote is opened and not closed properly within the next {num_lines - 1} line(s): {fault.message}"
    )
    return RowFault("csv-quotes", message)


def _show_lines(feed: _LineFeed) -> str:
    line = feed.taken[0]
    return feed.texts[0] if line.data is not None else line.head.decode("utf-8", "backslashreplace")


def _find_cell_fault(cells: Sequence[str], layout: CsvLayout, max_cell_bytes: int) -> RowFault | None:
    if len(cells) != len(layout.columns):
        message = f"has {len(cells)} cells, the header has {len(layout.columns)}"
        return RowFault("csv-cell-count", message)
    for name, cell in zip(layout.columns, cells, strict=True):
        if 4 * len(cell) > max_cell_bytes and len(cell.encode("utf-8", "replace")) > max_cell_bytes:
            return RowFault("cell-too-long", f"cell {shown(name)!r} has more than {max_cell_bytes} bytes")
        try:
            check_storable_text(cell)
        except RowFault as fault:
            return fault
    return None


def _first_lines(file: TextFile) -> list[str]:
    texts: list[str] = []
    num_chars = 0
    for line in file.iterate_lines():
        if line.data is None:
            break
        texts.append(line.data.decode(file.encoding.codec, "replace"))
        num_chars += len(texts[-1])
        if len(texts) >= _NUM_SNIFFED_LINES or num_chars > _MAX_SNIFFED_CHARS:
            break
    head = "".join(texts)
    if head.count("\r") > 3 * (head.count("\n") + 1):
        remedy = "Save the file with line ends LF or CRLF."
        raise FileRefused("line-ends-cr", "ends its lines with CR alone", remedy=remedy)
    return texts


def _sniff(lines: list[str], *, expects_tabs: bool) -> tuple[str, str]:
    """Return the delimiter that makes records as wide as the header, and why."""
    widths = {name: _measure(lines, delimiter) for name, delimiter in DELIMITERS.items()}
    wide = {name: (width, even) for name, (width, even) in widths.items() if width > 1}
    fitting = [name for name, (_, even) in wide.items() if even >= MIN_EVEN_FRACTION]
    if len(fitting) > 1 and expects_tabs and "tab" in fitting:
        fitting = ["tab"]
    if not fitting and len(wide) == 1:
        fitting = list(wide)
    seen = ", ".join(f"{name}: {width} columns, {even:.0%} even" for name, (width, even) in wide.items())
    if len(fitting) == 1:
        width, even = wide[fitting[0]]
        return DELIMITERS[
            fitting[0]
        ], f"{fitting[0]} gives {width} columns in {even:.0%} of the first records"
    if not wide:
        return ("\t" if expects_tabs else ","), "the first line holds no delimiter: one column"
    raise FileRefused("csv-delimiter-unsure", f"several delimiters are possible ({seen})", remedy=_REMEDY)


def _measure(lines: list[str], delimiter: str) -> tuple[int, float]:
    """Return (cells of the first record, part of the first records with as many)."""
    widths: list[int] = []
    # An error ends the counting: the last record of the sample may be cut off, and quotes may not fit.
    with contextlib.suppress(csv.Error):
        widths.extend(len(cells) for cells in csv.reader(lines, delimiter=delimiter, strict=True) if cells)
    return (widths[0], widths.count(widths[0]) / len(widths)) if widths else (0, 0.0)


def _read_header(file: TextFile, delimiter: str) -> tuple[str, ...]:
    record = next(_iterate_records(file, delimiter), None)
    if record is None:
        raise FileRefused("csv-empty", "holds no header line", remedy="Write the names of the columns first.")
    remedy = "Mend the first line, or state column_names when it is no header."
    fault = record.fault
    try:
        check_storable(record.cells)
    except RowFault as found:
        fault = fault or found
    if fault is not None:
        message = f"its header cannot be read: {fault.message}"
        raise FileRefused("csv-header-invalid", message, remedy=remedy)
    names = tuple(name.strip() or f"column_{place}" for place, name in enumerate(record.cells, start=1))
    twice = sorted({name for name in names if names.count(name) > 1}) if len(names) <= MAX_COLUMNS else []
    if twice or len(names) > MAX_COLUMNS:
        what = (
            f"names twice: {shown_list(twice)}" if twice else f"{len(names)} columns, at most {MAX_COLUMNS}"
        )
        raise FileRefused("csv-header-invalid", f"its header has {what}", remedy=remedy)
    return names
