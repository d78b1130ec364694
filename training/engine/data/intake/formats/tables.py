"""What Parquet and Arrow files share: columns that can be read, sizes measured before values are made.

pyarrow is imported when the first such file is met, never with this module.
"""

import base64
import importlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.intake.rows import (
    FileRefused,
    RawRow,
    RowFault,
    UnreadableRow,
    check_storable,
    make_excerpt,
)
from training.engine.data.intake.settings import IntakeLimits

MAX_BATCH_BYTES = 32 << 20
"""Batches whose texts are longer are turned into Python values row by row."""
ROWS_PER_BATCH = 256

_ELEMENT_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """The columns of a Parquet or Arrow file.

    Attributes:
        columns: Those that can be read.
        unread: Column to why it is left out.
        class_names: Columns whose numbers stand for names (a ``ClassLabel`` of Hugging Face datasets), with
            the names.
        num_rows: None when the file does not say.
    """

    columns: tuple[str, ...]
    unread: Mapping[str, str] = field(default_factory=dict)
    class_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    num_rows: int | None = None


def load_pyarrow(module: str = "pyarrow") -> ModuleType:
    """Import pyarrow or a module of it.

    Raises:
        FileRefused: ``pyarrow-missing`` with the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = "needs pyarrow, which is not installed"
        remedy = "Install assay-gate[data], or convert the file to JSONL."
        raise FileRefused("pyarrow-missing", message, remedy=remedy) from error


def describe_schema(schema: Any, *, num_rows: int | None = None) -> TableLayout:
    """Return the layout of an Arrow schema.

    Raises:
        FileRefused: ``columns-twice`` when two columns have one name.
    """
    names = [str(item.name) for item in schema]
    if len(set(names)) != len(names):
        message = "has two columns of the same name"
        raise FileRefused("columns-twice", message, remedy="Rename one of them.")
    unread = {item.name: f"type {shown(item.type)} is not read" for item in schema if not _is_read(item.type)}
    return TableLayout(
        columns=tuple(name for name in names if name not in unread),
        unread=unread,
        class_names=_read_class_names(schema.metadata or {}, names),
        num_rows=num_rows,
    )


def iterate_batch(
    batch: Any, layout: TableLayout, limits: IntakeLimits, *, first_number: int
) -> Iterator[RawRow | UnreadableRow]:
    """Yield the rows of one record batch, which holds only columns of the layout.

    Lengths are measured before Python values are made: one long text in a dictionary may stand in every row.
    """
    for start in range(0, batch.num_rows, ROWS_PER_BATCH):
        part = batch.slice(start, ROWS_PER_BATCH)
        number = first_number + start
        is_small = measure_bytes(part) <= MAX_BATCH_BYTES
        rows = _convert(part) if is_small else None
        for place in range(part.num_rows):
            row = rows[place] if rows is not None else part.slice(place, 1)
            yield _read_row(row, layout, limits, number + place)


def measure_bytes(values: Any) -> int:
    """Return about how many bytes the Python values of a batch, array or struct need: texts as they are,
    repeated as often as they stand there, and 8 for every other value.
    """
    pa = load_pyarrow()
    if isinstance(values, pa.RecordBatch):
        return sum(measure_bytes(column) for column in values.columns)
    kind = values.type
    if pa.types.is_dictionary(kind):
        lengths = _lengths(values.dictionary)
        if lengths is None:
            return _ELEMENT_BYTES * len(values)
        taken = lengths.take(values.indices)
        return _ELEMENT_BYTES * len(values) + (_sum(taken) or 0)
    if pa.types.is_struct(kind):
        return sum(measure_bytes(item) for item in values.flatten())
    if pa.types.is_map(kind):
        # Maps have no flatten, and their keys and items disregard slices.
        first, last = (values.offsets[place].as_py() for place in (0, len(values)))
        parts = (part.slice(first, last - first) for part in (values.keys, values.items))
        return _ELEMENT_BYTES * len(values) + sum(measure_bytes(part) for part in parts)
    if _is_list(kind):
        return _ELEMENT_BYTES * len(values) + measure_bytes(values.flatten())
    lengths = _lengths(values)
    return _ELEMENT_BYTES * len(values) + (0 if lengths is None else _sum(lengths) or 0)


def find_longest_text(values: Any) -> int:
    """Return the bytes of the longest text in the dictionaries of an array, those of its parts added up."""
    pa, compute = load_pyarrow(), load_pyarrow("pyarrow.compute")
    kind = values.type
    if pa.types.is_dictionary(kind):
        lengths = _lengths(values.dictionary)
        return 0 if lengths is None else compute.max(lengths).as_py() or 0
    if pa.types.is_struct(kind):
        return sum(map(find_longest_text, values.flatten()))
    if pa.types.is_map(kind):
        return find_longest_text(values.keys) + find_longest_text(values.items)
    return find_longest_text(values.values) if _is_list(kind) else 0


def make_plain(value: Any) -> Any:
    """Return a table's value as JSON has it: times as ISO 8601, decimals as texts, missing numbers as null.

    Raises:
        RowFault: ``number-not-finite`` for an infinity, ``not-json-safe`` for bytes that are no text and for
            types that JSON does not have.
    """
    match value:
        case None | str() | bool() | int():
            return value
        case float():
            # pandas writes missing numbers as NaN.
            if math.isinf(value):
                raise RowFault("number-not-finite", "a number is infinite")
            return None if math.isnan(value) else value
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | Decimal():
            return str(value)
        case list():
            return [make_plain(item) for item in value]
        case dict():
            return {str(key): make_plain(item) for key, item in value.items()}
        case tuple():
            return [make_plain(item) for item in value]
        case bytes():
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError as error:
                begin = base64.b16encode(value[:8]).decode()
                raise RowFault("not-json-safe", f"a value is bytes ({begin}…) and no text") from error
    raise RowFault("not-json-safe", f"a value of type {shown(type(value).__name__)} has no form in JSON")


def _read_row(row: Any, layout: TableLayout, limits: IntakeLimits, number: int) -> RawRow | UnreadableRow:
    values: Mapping[str, Any] = {}
    try:
        if not isinstance(row, dict):
            num_bytes = measure_bytes(row)
            if num_bytes > limits.max_line_bytes + _ELEMENT_BYTES * len(layout.columns):
                message = f"has {num_bytes} bytes, at most {limits.max_line_bytes} are read"
                raise RowFault("row-too-long", message)
            row = _convert_one(row)
        values = {name: make_plain(value) for name, value in row.items()}
        _check_size(values, limits)
        check_storable(values)
        return RawRow(number, _with_class_names(values, layout))
    except RowFault as fault:
        return UnreadableRow(number, fault, "", make_excerpt(values))


def _convert(batch: Any) -> list[dict[str, Any]] | None:
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError):
        # One cell spoils the batch (bytes that are no UTF-8, a date out of range): go row by row.
        return None
    return rows


def _convert_one(batch: Any) -> dict[str, Any]:
    try:
        row: dict[str, Any] = batch.to_pylist()[0]
    except UnicodeDecodeError as error:
        raise RowFault("undecodable", f"a text is not UTF-8: {shown(error.reason)}") from error
    except (ValueError, OverflowError) as error:
        raise RowFault("value-invalid", f"a value cannot be read: {shown(error)}") from error
    return row


def _check_size(values: Mapping[str, Any], limits: IntakeLimits) -> None:
    num_chars, waiting = 0, list(values.values())
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            num_chars += len(item) if item.isascii() else len(item.encode("utf-8", "replace"))
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            waiting.extend(item.values())
    if num_chars > limits.max_line_bytes:
        message = f"has {num_chars} bytes of text, at most {limits.max_line_bytes} are read"
        raise RowFault("row-too-long", message)


def _with_class_names(values: Mapping[str, Any], layout: TableLayout) -> Mapping[str, Any]:
    named = {}
    for column, names in layout.class_names.items():
        number = values.get(column)
        if isinstance(number, int) and not isinstance(number, bool):
            if not 0 <= number < len(names):
                message = f"{shown(column)!r} is class {number} of {len(names)}; unlabelled rows have -1"
                raise RowFault("class-unknown", message)
            named[column] = names[number]
    return {**values, **named} if named else values


def _read_class_names(metadata: Mapping[bytes, bytes], columns: Sequence[str]) -> dict[str, Sequence[str]]:
    """Read names of classes out of the metadata of Hugging Face datasets; anything odd is ignored."""
    raw = metadata.get(b"huggingface")
    if raw is None or len(raw) > 1 << 20:
        return {}
    try:
        features = json.loads(raw)["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return find_class_names(features, columns)


def find_class_names(features: Any, columns: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the names of classes per column out of the ``features`` of a Hugging Face dataset."""
    found: dict[str, Sequence[str]] = {}
    for column in columns:
        feature = features.get(column) if isinstance(features, dict) else None
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            names = feature.get("names")
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                found[column] = tuple(names)
    return found


def _is_list(kind: Any) -> bool:
    types = load_pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_read(kind: Any) -> bool:
    """Return whether values of an Arrow type are read; views, unions, extensions and run ends are not."""
    types = load_pyarrow().types
    if types.is_dictionary(kind):
        return _is_read(kind.value_type)
    if types.is_struct(kind):
        return all(_is_read(kind.field(place).type) for place in range(kind.num_fields))
    if types.is_map(kind):
        return _is_read(kind.key_type) and _is_read(kind.item_type)
    if _is_list(kind):
        return _is_read(kind.value_type)
    tests = ("null", "boolean", "integer", "floating", "decimal", "date", "time", "timestamp", "duration")
    texts = ("string", "large_string", "string_view", "binary", "large_binary", "fixed_size_binary")
    return any(getattr(types, f"is_{name}")(kind) for name in (*tests, *texts))


def _lengths(values: Any) -> Any:
    """Return the byte lengths of texts, or None for other types."""
    pa, compute = load_pyarrow(), load_pyarrow("pyarrow.compute")
    types = pa.types
    if types.is_string_view(values.type):
        values = values.cast(pa.large_string())
    is_text = any(
        getattr(types, f"is_{name}")(values.type)
        for name in ("string", "large_string", "binary", "large_binary", "fixed_size_binary")
    )
    return compute.binary_length(values) if is_text else None


def _sum(values: Any) -> int | None:
    total: int | None = load_pyarrow("pyarrow.compute").sum(values).as_py()
    return total
