"""Reading JSON without the liberties that Python's parser takes.

Python accepts duplicate keys, NaN, Infinity and numbers that overflow to infinity; none of these is one
clear JSON value. Used for data files, reference answers and model outputs alike.
"""

import json
import math
import re
from typing import Any, NoReturn

MAX_NESTING = 200
"""Deeper values are refused, far below Python's recursion limit: no answer of a task is so deep."""


class JsonTextError(ValueError):
    """The text is not one clear JSON value."""


class DuplicateKeyError(JsonTextError):
    """An object holds the same key twice."""


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def parse_json(text: str) -> Any:
    """Return the one JSON value that the whole text is.

    Args:
        text: JSON with at most JSON white space around it.

    Raises:
        DuplicateKeyError: An object holds a key twice.
        JsonTextError: Anything else that keeps the text from being one JSON value, including NaN, Infinity,
            numbers too large for a float, a byte order mark, text after the value, and nesting over
            ``MAX_NESTING``.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object_of_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_ascii_int,
        )
    except JsonTextError:
        raise
    except (ValueError, RecursionError) as error:
        raise JsonTextError(str(error)) from error
    if _is_nested_deeper(value, MAX_NESTING):
        raise JsonTextError(f"nested deeper than {MAX_NESTING} levels")
    return value


def json_equal(left: Any, right: Any) -> bool:
    """Say whether two parsed JSON values are the same JSON value.

    As in JSON Schema, 1 and 1.0 are the same number; unlike in Python, true is not 1. Key order does not
    matter.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and left == right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(json_equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and bool(left == right)


def find_unstorable_text(value: Any) -> str | None:
    r"""Return why a string inside the value cannot be stored, or None.

    A NUL cannot be stored by PostgreSQL, and a lone surrogate (from an escape such as ``\\ud800``) is not
    text.
    """
    if isinstance(value, str):
        found = _UNSTORABLE.search(value)
        if found is None:
            return None
        return "holds a NUL" if found.group() == "\x00" else "holds a lone surrogate, no character"
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list):
        parts = value
    return next((reason for part in parts if (reason := find_unstorable_text(part)) is not None), None)


def make_storable(value: Any) -> Any:
    """Return the value with every NUL and lone surrogate inside its strings replaced by a visible character.

    For what a model wrote: it is shown and stored, and must not break the database.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub(lambda match: "\u2400" if match.group() == "\x00" else "\ufffd", value)
    if isinstance(value, list):
        return [make_storable(item) for item in value]
    if isinstance(value, dict):
        return {make_storable(key): make_storable(item) for key, item in value.items()}
    return value


def _object_of_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise DuplicateKeyError(f"key {twice[0]!r} appears more than once in an object")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise JsonTextError(f"{name} is not JSON")


def _finite_float(digits: str) -> float:
    value = float(digits)
    # Python's pure scanner takes any Unicode digit; JSON's grammar has ASCII digits only.
    if not digits.isascii() or not math.isfinite(value):
        raise JsonTextError(f"{digits[:40]} is not a finite JSON number")
    return value


def _ascii_int(digits: str) -> int:
    if not digits.isascii():
        raise JsonTextError(f"{digits[:40]} is not a JSON number")
    return int(digits)


def _is_nested_deeper(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [part for item in level for part in _parts(item)]
        if not level:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
