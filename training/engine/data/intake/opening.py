"""From a raw file to a stream of raw rows: its encoding, its layout, and the reader of its format."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from registry.artifacts.findings import Finding
from training.engine.data.intake.encodings import TextEncoding, detect_encoding
from training.engine.data.intake.formats.arrow import find_arrow_layout, read_arrow
from training.engine.data.intake.formats.csv import CsvLayout, find_csv_layout, read_csv
from training.engine.data.intake.formats.json_array import DATA_KEY, read_json_array
from training.engine.data.intake.formats.jsonl import read_jsonl
from training.engine.data.intake.formats.parquet import find_parquet_layout, read_parquet
from training.engine.data.intake.formats.tables import TableLayout, find_class_names
from training.engine.data.intake.formats.text_file import TextFile
from training.engine.data.intake.rows import FileRefused, RawRow, RowFault, UnreadableRow
from training.engine.data.intake.settings import AUTO, IntakeSettings
from training.engine.data.intake.sources import SourceFile
from training.engine.data.intake.streams import open_bytes
from training.engine.data.intake.strict_json import parse_value


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A raw file of which it is known how to read it; nothing is held open.

    Attributes:
        source: The file.
        settings: Those it is read by.
        format: One of jsonl, json, csv, parquet, arrow.
        format_reason: Why.
        text: For text formats.
        csv: For CSV.
        table: For Parquet and Arrow.
        notices: What a person should know.
    """

    source: SourceFile
    settings: IntakeSettings
    format: str
    format_reason: str
    text: TextFile | None = None
    csv: CsvLayout | None = None
    table: TableLayout | None = None
    notices: tuple[Finding, ...] = ()

    @property
    def encoding(self) -> TextEncoding | None:
        """The encoding; None for tables."""
        return self.text.encoding if self.text is not None else None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns of CSV and tables; None for JSON, where every row has its own."""
        if self.csv is not None:
            return self.csv.columns
        return self.table.columns if self.table is not None else None

    def iterate_rows(self, columns: Collection[str] | None = None) -> Iterator[RawRow | UnreadableRow]:
        """Yield the rows.

        Args:
            columns: Of tables, those that are wanted; None reads all.

        Raises:
            FileRefused: The file turns out to be broken.
            OSError: It cannot be read.
        """
        limits = self.settings.limits
        if self.table is not None:
            read = read_parquet if self.format == "parquet" else read_arrow
            return read(self.source.path, self.table, limits, columns=columns)
        if self.text is None:
            raise ValueError("a text format without its text")
        if self.csv is not None:
            return read_csv(self.text, self.csv)
        return read_jsonl(self.text) if self.format == "jsonl" else read_json_array(self.text)


def open_source(
    source: SourceFile, settings: IntakeSettings, *, max_survey_bytes: int | None = None
) -> OpenedFile:
    """Find out how to read a raw file.

    Args:
        source: The file.
        settings: What is stated wins.
        max_survey_bytes: Bytes by which the encoding is judged; None judges by the whole file.

    Raises:
        FileRefused: With code, reason and remedy.
        OSError: The file cannot be read.
    """
    if source.format in ("parquet", "arrow"):
        return _open_table(source, settings)
    limits = settings.limits
    encoding = detect_encoding(
        lambda: open_bytes(
            source.path, is_gzip=source.is_gzip, max_decompressed_bytes=limits.max_decompressed_bytes
        ),
        stated=None if settings.encoding == AUTO else settings.encoding,
        max_line_bytes=limits.max_line_bytes,
        max_bytes=max_survey_bytes,
    )
    text = TextFile(path=source.path, is_gzip=source.is_gzip, encoding=encoding, limits=limits)
    notices = _describe_encoding(source, encoding)
    if source.format in ("csv", "tsv"):
        layout = find_csv_layout(text, settings, expects_tabs=source.format == "tsv")
        return OpenedFile(
            source=source,
            settings=settings,
            format="csv",
            format_reason=f"by name or stated; delimiter: {layout.reason}",
            text=text,
            csv=layout,
            notices=notices,
        )
    kind, reason = _tell_json(source, settings, text)
    if source.format not in (AUTO, kind):
        message = f"The name says {source.format}, but {reason}; it is read as {kind}."
        notices = (*notices, Finding.info("format-unlike-name", message, where=source.name))
    return OpenedFile(
        source=source, settings=settings, format=kind, format_reason=reason, text=text, notices=notices
    )


def _open_table(source: SourceFile, settings: IntakeSettings) -> OpenedFile:
    find = find_parquet_layout if source.format == "parquet" else find_arrow_layout
    table = find(source.path)
    if not table.class_names and source.features:
        table = TableLayout(
            columns=table.columns,
            unread=table.unread,
            class_names=find_class_names(source.features, table.columns),
            num_rows=table.num_rows,
        )
    notices = []
    if table.class_names:
        message = (
            f"Numbers of {', '.join(sorted(table.class_names))} are replaced by the names of their classes."
        )
        notices.append(Finding.info("class-names", message, where=source.name))
    return OpenedFile(
        source=source,
        settings=settings,
        format=source.format,
        format_reason="by name, first bytes, or stated",
        table=table,
        notices=tuple(notices),
    )


def _describe_encoding(source: SourceFile, encoding: TextEncoding) -> tuple[Finding, ...]:
    notices = []
    if encoding.num_bom_bytes:
        message = f"The byte order mark of {encoding.num_bom_bytes} bytes was left out."
        notices.append(Finding.info("byte-order-mark", message, where=source.name))
    if encoding.confidence == "likely":
        message = f"Read as {encoding.name}: {encoding.reason}."
        remedy = "Look whether the texts are right; state encoding to be sure."
        notices.append(Finding.warning("encoding-likely", message, where=source.name, remedy=remedy))
    return tuple(notices)


def _tell_json(source: SourceFile, settings: IntakeSettings, text: TextFile) -> tuple[str, str]:
    """Tell lines of JSON from one list by the first line that is not blank, and why."""
    if settings.format in ("jsonl", "json"):
        return settings.format, "stated"
    named = source.format if source.format != AUTO else "jsonl"
    first, second = _first_two_lines(text)
    if not first:
        return named, "by name; the file is empty or its first line too long"
    if first.startswith("["):
        return "json", "it begins with a list"
    if not first.startswith("{"):
        if source.format == AUTO:
            remedy = "State format, or give the file the ending of its format."
            raise FileRefused(
                "format-unknown", "has no known ending, and its content is no JSON", remedy=remedy
            )
        return named, "by name"
    if _is_object(first, settings):
        if named == "json" and not second and _holds_list(first, settings):
            return "json", f'its only line is an object with a list under "{DATA_KEY}"'
        return "jsonl", "its first line is a whole object"
    if named == "json" or second.startswith('"'):
        return "json", "it begins with an object that its first line does not end"
    return named, "by name; its first line is no whole object"


def _first_two_lines(text: TextFile) -> tuple[str, str]:
    found: list[str] = []
    for line in text.iterate_lines():
        if line.data is None:
            found.append("" if not found else "too long")
            break
        content = line.data.decode(text.encoding.codec, "replace").strip()
        if content:
            found.append(content)
        if len(found) == 2:
            break
    return (*found, "", "")[0], (*found, "", "")[1]


def _is_object(line: str, settings: IntakeSettings) -> bool:
    try:
        return isinstance(parse_value(line, max_depth=settings.limits.max_json_depth), dict)
    except RowFault as fault:
        # Whole, but refused for what is in it.
        return fault.code != "not-json"


def _holds_list(line: str, settings: IntakeSettings) -> bool:
    try:
        value = parse_value(line, max_depth=settings.limits.max_json_depth)
    except RowFault:
        return False
    return isinstance(value, dict) and isinstance(value.get(DATA_KEY), list)
