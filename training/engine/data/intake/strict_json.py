"""Strict parsing of one row of JSON: bounded depth, no key twice, no NaN, no text that cannot be stored."""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

from registry.artifacts.findings import shown
from training.engine.data.intake.rows import RowFault, check_storable

# Possessive, and the closing quote is optional: the scan never goes back, whatever the text (linear time).
_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_RISKY_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Refused(Exception):
    """Raised inside the parser's hooks; not a ValueError, so that the parser's own errors stay apart."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.fault = RowFault(code, message)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise _Refused("duplicate-key", f"the key {shown(twice)!r} is given twice in one object")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise _Refused("number-not-finite", f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused("number-not-finite", f"{shown(text[:40])} is too large for a number")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_finite
)


def is_deeper(text: str, max_depth: int) -> bool:
    """Return whether brackets are nested deeper than allowed, strings left aside; linear in the text."""
    if text.count("{") + text.count("[") <= max_depth:
        return False
    depth = 0
    for match in _STRUCTURE.finditer(text):
        first = text[match.start()]
        if first in "[{":
            depth += 1
            if depth > max_depth:
                return True
        elif first != '"':
            depth -= 1
    return False


def parse_value(text: str, *, max_depth: int) -> Any:
    """Parse one JSON value.

    Args:
        text: The whole value; white space around it is allowed.
        max_depth: Deepest nesting; a plain object has depth 1.

    Raises:
        RowFault: ``not-json``, ``too-deep``, ``duplicate-key``, ``number-not-finite``, ``nul-character`` or
            ``lone-surrogate``.
    """
    _check_before(text, max_depth)
    try:
        value = _DECODER.decode(text)
    except _Refused as refused:
        raise refused.fault from refused
    except ValueError as error:
        raise RowFault("not-json", f"not JSON: {shown(error)}") from error
    except RecursionError as error:
        raise RowFault("too-deep", "the row is nested too deeply") from error
    _check_after(text, value)
    return value


def parse_row(text: str, *, max_depth: int) -> dict[str, Any]:
    """Parse one JSON object.

    Raises:
        RowFault: As ``parse_value``, or ``not-an-object``.
    """
    return as_row(parse_value(text, max_depth=max_depth))


def as_row(value: Any) -> dict[str, Any]:
    """Return the value when it is an object.

    Raises:
        RowFault: ``not-an-object``.
    """
    if not isinstance(value, dict):
        raise RowFault("not-an-object", f"is {describe_type(value)}, not an object of columns")
    return value


def decode_at(text: str, start: int) -> tuple[Any, int] | None:
    """Parse the JSON value that begins at ``start`` of a longer text.

    Returns:
        The value and where it ends; None when it is cut off, broken or refused. The value still has to pass
        ``check_decoded``.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (_Refused, ValueError, RecursionError):
        return None
    return value, end


def check_decoded(text: str, value: Any, *, max_depth: int) -> None:
    """Check what ``decode_at`` gave as ``parse_value`` does.

    Args:
        text: The part of the text that the value was read from.
        value: The value.
        max_depth: Deepest nesting.

    Raises:
        RowFault: As ``parse_value``.
    """
    _check_before(text, max_depth)
    _check_after(text, value)


def _check_before(text: str, max_depth: int) -> None:
    if "\x00" in text:
        raise RowFault("nul-character", "the row holds a NUL character")
    if is_deeper(text, max_depth):
        raise RowFault("too-deep", f"the row is nested deeper than {max_depth} levels")


def _check_after(text: str, value: Any) -> None:
    if _RISKY_ESCAPE.search(text) or (not text.isascii() and _SURROGATE.search(text)):
        check_storable(value)


def describe_type(value: Any) -> str:
    """Name the JSON type of a value, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
    return f"a value of type {type(value).__name__}"
