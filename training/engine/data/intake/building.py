"""From a raw row to an example: filters, conversation, id, known keys, origin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.engine.data.examples import ChatMessage, Example
from training.engine.data.intake.ids import make_id
from training.engine.data.intake.known_fields import KNOWN_KEYS, make_label, read_id, read_known
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.settings import FIELD_MEANINGS, IntakeSettings
from training.engine.data.intake.shapes.shape import Shape

NOT_ADOPTED = "not-adopted"
REWORKED = "reworked"
GENERAL = "general"
"""Value of ``role`` of general instruction data, and name of the folder that holds it."""

_RESERVED = frozenset({"id", "messages", "origin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContext:
    """What the examples of one file share.

    Attributes:
        name: Relative name, for the origin.
        stem: For made ids.
        split: Split of the file; None when it belongs to none.
        is_general: Whether the file lies in ``general/``.
        keeps_all: Whether keys that are not known are kept (lines of JSON) or left out (tables).
    """

    name: str
    stem: str
    split: str | None = None
    is_general: bool = False
    keeps_all: bool = True


@dataclass(frozen=True, slots=True)
class Built:
    """An example and the notes of its making; see ``shapes.shape.NOTES``."""

    example: Example
    notes: tuple[str, ...] = ()


class ExampleBuilder:
    """Makes examples of one file's rows; holds nothing of them."""

    def __init__(self, shape: Shape, settings: IntakeSettings, context: FileContext) -> None:
        self._shape = shape
        self._settings = settings
        self._context = context
        self._meanings = find_meanings(shape, settings)
        self._id_column = settings.columns.get("id", "id")
        self._known = _find_known_columns(shape, settings)

    def find_reason_to_leave_out(self, row: Mapping[str, Any]) -> str | None:
        """Return why the settings leave a row out, None when they take it (MISSION C5)."""
        adoption, rework = self._settings.adoption, self._settings.rework
        if adoption is not None and not adoption.matches(row):
            return NOT_ADOPTED
        return REWORKED if rework is not None and rework.matches(row) else None

    def build(self, row: Mapping[str, Any], number: int) -> Built:
        """Make the example of one row.

        Args:
            row: Column to value.
            number: 1-based number of the record.

        Raises:
            RowFault: The row is bad.
        """
        conversation = self._shape.read(row)
        messages = conversation.messages
        fields = self._read_fields(row)
        if self._context.is_general:
            fields["role"] = GENERAL
        is_general = fields.get("role") == GENERAL
        prompt = self._settings.system_prompt
        if prompt is not None and not is_general and messages[0].role != "system":
            messages = (ChatMessage("system", prompt), *messages)
        if self._settings.needs_answer and messages[-1].role != "assistant":
            raise RowFault("answer-missing", "the conversation does not end with an answer")
        example = Example(
            example_id=read_id(row.get(self._id_column)) or make_id(self._context.stem, number),
            messages=messages,
            is_general=is_general,
            fields={**fields, "origin": self._make_origin(row, number)},
        )
        return Built(example, conversation.notes)

    def _read_fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        drops_nulls = not self._context.keeps_all
        for column, value in row.items():
            for meaning in self._known.get(column, ()):
                read = read_known(meaning, value, drops_nulls=drops_nulls)
                if read is not None:
                    fields[meaning] = read
            if column not in fields and self._is_kept(column):
                fields[column] = value
        self._add_tags(row, fields)
        for key in ("reference_source", "confirmed_by"):
            default = getattr(self._settings, key)
            if default is not None:
                fields.setdefault(key, default)
        return fields

    def _is_kept(self, column: str) -> bool:
        if column in _RESERVED:
            return False
        if column in self._settings.keep:
            return True
        return self._context.keeps_all and column not in self._meanings and column not in KNOWN_KEYS

    def _add_tags(self, row: Mapping[str, Any], fields: dict[str, Any]) -> None:
        added = {
            tag: make_label(f"tag {tag}", row[column], code="tags-invalid")
            for tag, column in self._settings.tags.items()
            if row.get(column) not in (None, "")
        }
        if added:
            fields["tags"] = {**fields.get("tags", {}), **added}

    def _make_origin(self, row: Mapping[str, Any], number: int) -> dict[str, Any]:
        kind = "log" if self._settings.is_log else "file"
        origin: dict[str, Any] = {"kind": kind, "file": self._context.name, "row": number}
        if self._context.split is not None:
            origin["split"] = self._context.split
        column = self._settings.columns.get("origin", "origin")
        given = read_known("origin", row.get(column), drops_nulls=not self._context.keeps_all)
        return {**origin, **(given or {})}


def _find_known_columns(shape: Shape, settings: IntakeSettings) -> dict[str, list[str]]:
    """Return column to the known keys that are read from it; one column may serve several."""
    found: dict[str, list[str]] = {}
    for meaning in dict.fromkeys((*KNOWN_KEYS, *FIELD_MEANINGS)):
        column = settings.columns.get(meaning, meaning)
        is_taken = column in shape.meanings and meaning not in settings.columns
        if meaning not in ("id", "origin") and not is_taken:
            found.setdefault(column, []).append(meaning)
    return found


def find_meanings(shape: Shape | None, settings: IntakeSettings) -> dict[str, str]:
    """Return column to meaning, for the columns that become part of an example in another form.

    Filters are not among them: a log's column stays a key of the example where all keys stay.
    """
    meanings = {column: f"tag {tag}" for tag, column in settings.tags.items()}
    meanings.update({column: meaning for meaning, column in settings.columns.items()})
    meanings.update(shape.meanings if shape is not None else {})
    return meanings
