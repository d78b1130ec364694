"""What a person may state about raw data files: everything is found out where nothing is stated."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.intake.encodings import ENCODING_NAMES
from training.engine.errors import ConfigInvalid, Fault
from training.engine.settings_rules import (
    FLAG,
    NAMES,
    TEXT,
    TEXTS,
    Rule,
    choice,
    count,
    optional,
    read_section,
)

AUTO = "auto"
FORMATS = ("jsonl", "json", "csv", "tsv", "parquet", "arrow")
SHAPES = ("messages", "alpaca", "prompt_completion", "sharegpt", "columns")
DELIMITERS: Mapping[str, str] = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"}
REFERENCE_SOURCES = ("person", "rule", "model")

CONVERSATION_MEANINGS = ("input", "answer", "system", "history", "messages", "conversations")
"""Meanings that make the conversation of shape ``columns``."""
FIELD_MEANINGS = (
    "id",
    "group",
    "category",
    "dimension",
    "reference_source",
    "confirmed_by",
    "reference",
    "scoring",
    "source",
    "origin",
)
"""Meanings that make other keys of the example; they may be mapped beside any shape."""
MEANINGS = (*CONVERSATION_MEANINGS, *FIELD_MEANINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Chooses rows by one column, as logs need it (MISSION C5).

    Attributes:
        column: Its name.
        values: Texts; a cell is compared without outer white space and without regard to case, true and
            false as ``true`` and ``false``, numbers as JSON writes them.
    """

    column: str
    values: tuple[str, ...]

    def matches(self, row: Mapping[str, Any]) -> bool:
        """Return whether the row's cell is one of the values; a missing cell or null is none of them."""
        cell = row.get(self.column)
        if cell is None or isinstance(cell, list | dict):
            return False
        text = str(cell).lower() if isinstance(cell, bool) else str(cell)
        return text.strip().casefold() in {value.strip().casefold() for value in self.values}


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeLimits:
    """Bounds that keep memory and time small whatever a file holds.

    Attributes:
        max_line_bytes: Longest row: a line of JSONL, an element of a JSON array, a record of CSV, the texts
            of a table's row. A longer one is skipped and reported. The default is also the registry's limit
            for a line of a dataset.
        max_json_depth: Deepest nesting of one row.
        max_cell_bytes: Longest cell of CSV, in UTF-8.
        max_rows: Of all files together; more rows refuse the whole.
        max_decompressed_bytes: Of one .gz file; more refuse the file.
        max_listed_bad_rows: Bad rows described one by one; the rest is counted by reason.
    """

    max_line_bytes: int = 1 << 20
    max_json_depth: int = 64
    max_cell_bytes: int = 1 << 20
    max_rows: int = 5_000_000
    max_decompressed_bytes: int = 8 << 30
    max_listed_bad_rows: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeSettings:
    """How raw files become examples.

    Attributes:
        format: "auto" or one of ``FORMATS``, then for every file.
        encoding: "auto" or one of ``ENCODING_NAMES``; what is stated wins over what the bytes look like.
        shape: "auto" or one of ``SHAPES``.
        columns: Meaning to column, meanings out of ``MEANINGS``.
        keep: Columns of CSV, Parquet and Arrow that stay as further keys of the example. Lines of JSON keep
            all of theirs.
        tags: Tag to column.
        adoption: Only rows that match are taken; None takes all.
        rework: Rows that match are left out; None leaves out none.
        reference_source: Who made the references, for rows that do not say: person, rule or model.
        confirmed_by: Who confirmed the references, for rows that do not say.
        system_prompt: Put before conversations without a system message, except general ones.
        needs_answer: Whether a conversation that does not end with an answer is a bad row.
        splits: Splits to read, as ``train``; None reads all. Files that belong to no split are always read.
        delimiter: Of CSV: "auto" or one of ``DELIMITERS``.
        column_names: Of CSV without a header line; None means that the first line is the header.
        limits: See ``IntakeLimits``.
    """

    format: str = AUTO
    encoding: str = AUTO
    shape: str = AUTO
    columns: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    adoption: RowFilter | None = None
    rework: RowFilter | None = None
    reference_source: str | None = None
    confirmed_by: str | None = None
    system_prompt: str | None = None
    needs_answer: bool = False
    splits: tuple[str, ...] | None = None
    delimiter: str = AUTO
    column_names: tuple[str, ...] | None = None
    limits: IntakeLimits = field(default_factory=IntakeLimits)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], where: str = "intake") -> "IntakeSettings":
        """Read settings; missing keys take their defaults, unknown ones are refused.

        Args:
            raw: As ``to_json`` gives them. ``tags`` may also be a list of columns, each its own tag.
            where: Name of the section, for the places of the faults.

        Raises:
            ConfigInvalid: ``intake-settings-invalid`` with every fault found.
        """
        faults: list[Fault] = []
        rest = {key: value for key, value in raw.items() if key not in _SECTIONS}
        values = read_section(where, rest, _RULES, faults)
        for name, read in _SECTIONS.items():
            if raw.get(name) is not None:
                values[name] = read(f"{where}.{name}", raw[name], faults)
        faults.extend(_contradictions(where, values))
        if faults:
            listed = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:20])
            message = f"The intake settings have {len(faults)} fault(s): {listed}"
            raise ConfigInvalid("intake-settings-invalid", message, faults=faults)
        # Sorted: a database may give a stored recipe back with its keys in another order, and the order of
        # tags decides bytes.
        for name in ("columns", "tags"):
            values[name] = dict(sorted(values.get(name, {}).items()))
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return all values, defaults included; ``from_json`` of it gives equal settings."""
        result = {item.name: getattr(self, item.name) for item in fields(self)}
        result.update(columns=dict(self.columns), tags=dict(self.tags), keep=list(self.keep))
        for name in ("adoption", "rework"):
            chosen = result[name]
            result[name] = chosen and {"column": chosen.column, "values": list(chosen.values)}
        for name in ("splits", "column_names"):
            result[name] = None if result[name] is None else list(result[name])
        result["limits"] = asdict(self.limits)
        return result

    @property
    def is_log(self) -> bool:
        """Whether rows are chosen by what became of them, so that their origin is a log."""
        return self.adoption is not None or self.rework is not None

    @property
    def mapped_columns(self) -> frozenset[str]:
        """Columns that have a meaning by these settings."""
        filters = [item.column for item in (self.adoption, self.rework) if item is not None]
        return frozenset((*self.columns.values(), *self.tags.values(), *filters))


def _read_columns(where: str, raw: Any, faults: list[Fault]) -> dict[str, str]:
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            if key not in MEANINGS and isinstance(value, str) and value in MEANINGS:
                remedy = f'Write the meaning first: {{"{value}": "{shown(key)}"}}.'
                message = f"names a column before its meaning. {remedy}"
                faults.append(Fault(code="columns-turned-round", message=message, where=where, remedy=remedy))
                return {}
    return read_section(where, raw, dict.fromkeys(MEANINGS, TEXT), faults)


def _read_tags(where: str, raw: Any, faults: list[Fault]) -> dict[str, str]:
    tags = {name: name for name in raw if isinstance(name, str)} if isinstance(raw, list) else raw
    if isinstance(raw, list) and len(tags) != len(raw):
        faults.append(Fault(code="invalid-value", message="must be a list of different names", where=where))
    known = [key for key in tags if isinstance(key, str) and key] if isinstance(tags, Mapping) else []
    return read_section(where, tags, dict.fromkeys(known, TEXT), faults)


def _read_filter(where: str, raw: Any, faults: list[Fault]) -> RowFilter | None:
    values = read_section(where, raw, {"column": TEXT, "values": _CELL_VALUES}, faults)
    missing = [key for key in ("column", "values") if isinstance(raw, Mapping) and key not in raw]
    for key in missing:
        faults.append(Fault(code="missing-key", message="is missing", where=f"{where}.{key}"))
    return RowFilter(**values) if len(values) == 2 else None


def _read_limits(where: str, raw: Any, faults: list[Fault]) -> IntakeLimits:
    return IntakeLimits(**read_section(where, raw, _LIMIT_RULES, faults))


def _read_cell_values(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError
    if not all(isinstance(item, str | int | float) for item in value):
        raise ValueError
    return tuple(str(item).lower() if isinstance(item, bool) else str(item) for item in value)


_CELL_VALUES = Rule("a list of texts, numbers or true and false that is not empty", _read_cell_values)

_RULES: Mapping[str, Rule] = {
    "format": choice(AUTO, *FORMATS),
    "encoding": choice(AUTO, *ENCODING_NAMES),
    "shape": choice(AUTO, *SHAPES),
    "keep": TEXTS,
    "reference_source": optional(choice(*REFERENCE_SOURCES)),
    "confirmed_by": optional(TEXT),
    "system_prompt": optional(TEXT),
    "needs_answer": FLAG,
    "splits": optional(NAMES),
    "delimiter": choice(AUTO, *DELIMITERS),
    "column_names": optional(NAMES),
}

_LIMIT_RULES: Mapping[str, Rule] = {
    "max_line_bytes": count(1024, 64 << 20),
    # Well under the interpreter's limit of 1000 nested calls, whoever calls.
    "max_json_depth": count(4, 200),
    "max_cell_bytes": count(1024, 64 << 20),
    "max_rows": count(1, 100_000_000),
    "max_decompressed_bytes": count(1024, 1 << 40),
    "max_listed_bad_rows": count(0, 10_000),
}

_SECTIONS: Mapping[str, Callable[[str, Any, list[Fault]], Any]] = {
    "columns": _read_columns,
    "tags": _read_tags,
    "adoption": _read_filter,
    "rework": _read_filter,
    "limits": _read_limits,
}


def _contradictions(where: str, values: Mapping[str, Any]) -> list[Fault]:
    faults = []
    columns = values.get("columns") or {}
    makers = [name for name in ("input", "messages", "conversations") if name in columns]
    shape = values.get("shape", AUTO)
    if shape == "columns" and not makers:
        message = "shape columns needs the column of input (or of messages, or of conversations)"
        faults.append(Fault(code="columns-missing", message=message, where=f"{where}.columns"))
    if len(makers) > 1:
        message = f"{' and '.join(makers)} each make the whole conversation; map one of them"
        faults.append(Fault(code="columns-contradict", message=message, where=f"{where}.columns"))
    stray = [name for name in ("answer", "system", "history") if name in columns and not makers]
    if stray and shape == AUTO:
        message = f"{', '.join(stray)} mapped without input; map input as well"
        faults.append(Fault(code="columns-missing", message=message, where=f"{where}.columns"))
    conversational = [name for name in CONVERSATION_MEANINGS if name in columns]
    if conversational and shape not in (AUTO, "columns"):
        message = f"{', '.join(conversational)} can only be mapped with shape columns, not with {shape}"
        faults.append(Fault(code="columns-contradict", message=message, where=f"{where}.columns"))
    never = [name for name in values.get("keep", ()) if name in ("id", "messages", "origin")]
    if never:
        message = f"{', '.join(never)} cannot be kept as a further key; it is read by its meaning"
        faults.append(Fault(code="keep-reserved", message=message, where=f"{where}.keep"))
    return faults
