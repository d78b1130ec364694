"""Keys of an example that the product knows: read from a row, checked as the registry will check them."""

from collections.abc import Mapping
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.intake.ids import MAX_ID_CHARS
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.settings import REFERENCE_SOURCES
from training.engine.data.intake.strict_json import describe_type, parse_value

MAX_LABEL_CHARS = 64
"""The registry's limit for category and dimension."""
KNOWN_KEYS = (
    "tags",
    "category",
    "reference_source",
    "confirmed_by",
    "group",
    "dimension",
    "scoring",
    "reference",
    "source",
    "role",
)
"""Keys that pass from every format, besides id and origin."""

_OBJECTS = ("tags", "scoring", "origin")
_LABELS = ("category", "dimension")


def read_id(value: Any) -> str | None:
    """Return the id of a row as text; None when it has none (null, blank).

    Raises:
        RowFault: ``id-invalid`` or ``id-too-long``.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RowFault("id-invalid", f"the id is {describe_type(value)}; it must be a text or a whole number")
    # A number of thousands of digits is refused before it is written out.
    is_long = len(value) > MAX_ID_CHARS if isinstance(value, str) else abs(value) >= 10**MAX_ID_CHARS
    if is_long:
        raise RowFault("id-too-long", f"the id has more than {MAX_ID_CHARS} characters")
    return str(value)


def read_known(key: str, value: Any, *, drops_nulls: bool = False) -> Any:
    """Return the value of a known key as datasets hold it; None when the row has none.

    Texts that hold JSON, as CSV has them, are read for keys that must be objects.

    Args:
        key: One of ``KNOWN_KEYS``, or origin.
        value: What the row holds.
        drops_nulls: Whether null inside scoring and origin means that the key is absent, as tables need it,
            which fill the fields that one row has and another has not.

    Raises:
        RowFault: ``tags-invalid``, ``category-invalid`` or the like, with what is allowed.
    """
    if value is None or value == "":
        return None
    if key in _OBJECTS:
        value = _read_object(key, value)
        if key == "tags":
            return _read_tags(value)
        return {name: item for name, item in value.items() if item is not None} if drops_nulls else value
    if key in ("reference", "source", "role"):
        return value
    text = make_label(key, value, code=f"{key.replace('_', '-')}-invalid")
    if key in _LABELS and len(text) > MAX_LABEL_CHARS:
        raise RowFault(f"{key}-invalid", f"{key} has more than {MAX_LABEL_CHARS} characters")
    if key == "reference_source" and text not in REFERENCE_SOURCES:
        message = f"reference_source is {shown(text)!r}, not one of {', '.join(REFERENCE_SOURCES)}"
        raise RowFault("reference-source-invalid", message)
    return text


def make_label(what: str, value: Any, *, code: str) -> str:
    """Return a value as the text of a label: numbers, true and false as JSON writes them.

    Args:
        what: Name of the label, for the message; may be foreign text.
        value: What the row holds.
        code: Of the fault.

    Raises:
        RowFault: ``code`` for lists, objects and null.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise RowFault(code, f"{shown(what)} is {describe_type(value)}, not a text")


def _read_object(key: str, value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = parse_value(value, max_depth=16)
        except RowFault as fault:
            raise RowFault(f"{key}-invalid", f"{key} is {fault.message}") from fault
    if isinstance(value, Mapping):
        return value
    if key == "origin":
        return {"given": value}
    raise RowFault(f"{key}-invalid", f"{key} is {describe_type(value)}, not an object")


def _read_tags(tags: Mapping[str, Any]) -> dict[str, str] | None:
    read = {}
    for name, value in tags.items():
        if value is not None:
            read[name] = make_label(f"tag {name}", value, code="tags-invalid")
    return read or None
