"""Raw rows between the readers of formats and the makers of examples, and what makes a row bad."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.artifacts.findings import shown
from training.engine.errors import Fault

MAX_EXCERPT_CHARS = 120

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class RowFault(Exception):
    """One row cannot become an example.

    Args:
        code: Stable kebab-case identifier of the reason.
        message: What is wrong, in one sentence; foreign text in it has gone through ``shown``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class FileRefused(Exception):
    """A whole file cannot be read; carries the fault with place and remedy."""

    def __init__(self, code: str, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.fault = Fault(code=code, message=message, where=where, remedy=remedy)

    def at(self, where: str) -> "FileRefused":
        """Return the same refusal with the file's name, where it has no place yet."""
        fault = self.fault
        return FileRefused(fault.code, fault.message, where=fault.where or shown(where), remedy=fault.remedy)


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row as the file holds it.

    Attributes:
        number: 1-based number of the record; blank lines are none.
        values: Column to value: for JSON any JSON value, for CSV texts, for tables plain Python values.
        place: More exact place such as ``line 17``; "" when the number says it all.
    """

    number: int
    values: Mapping[str, Any]
    place: str = ""


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A record that could not even be read as a row.

    Attributes:
        number: As in ``RawRow``.
        fault: Why.
        place: As in ``RawRow``.
        excerpt: Beginning of the record, fit for a message.
    """

    number: int
    fault: RowFault
    place: str = ""
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that was left out because something is wrong with it.

    Attributes:
        file: Relative name.
        row: 1-based number of the record.
        code: Stable kebab-case reason.
        message: What is wrong.
        place: More exact place; "" when unknown.
        excerpt: Beginning of the record, at most 120 characters, unprintable ones escaped.
    """

    file: str
    row: int
    code: str
    message: str
    place: str = ""
    excerpt: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the line of ``bad_rows.jsonl``."""
        return {
            "file": self.file,
            "row": self.row,
            "place": self.place,
            "code": self.code,
            "message": self.message,
            "excerpt": self.excerpt,
        }


def make_excerpt(value: object) -> str:
    """Return the beginning of a record as `BadRow.excerpt` holds it."""
    if isinstance(value, bytes):
        value = value[: 4 * MAX_EXCERPT_CHARS].decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        value = ", ".join(f"{str(key)[:40]}: {_beginning(item)}" for key, item in list(value.items())[:20])
    return shown(str(value)[: MAX_EXCERPT_CHARS + 1])


def _beginning(value: object) -> str:
    # Only the first elements: repr of a whole cell could be as long as the row.
    if isinstance(value, list):
        return f"[{_beginning(value[0])}, …" if value else "[]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{str(key)[:40]}: …" for key in list(value)[:5]) + "}"
    return repr(value[:MAX_EXCERPT_CHARS]) if isinstance(value, str | bytes) else str(value)[:40]


def count_characters(value: Any) -> int:
    """Return how many characters the texts of a value have, and 1 for every other value inside it."""
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting.extend(item.values())
            total += sum(map(len, map(str, item)))
        elif isinstance(item, list):
            waiting.extend(item)
        total += len(item) if isinstance(item, str) else 1
    return total


def check_storable(value: Any) -> None:
    """Refuse texts that databases and other readers do not take.

    Args:
        value: Texts, lists and mappings, nested; other values are passed over.

    Raises:
        RowFault: ``nul-character`` or ``lone-surrogate``.
    """
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            check_storable_text(item)
        elif isinstance(item, Mapping):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            waiting.extend(item)


def check_storable_text(text: str) -> None:
    """Refuse one text, as ``check_storable`` does."""
    # isascii is a flag of the string, so plain texts cost one search for NUL.
    found = ("\x00" in text) if text.isascii() else _UNSTORABLE.search(text) is not None
    if not found:
        return
    if "\x00" in text:
        raise RowFault("nul-character", "a text holds a NUL character")
    raise RowFault("lone-surrogate", "a text holds half of a surrogate pair, which is no character")
