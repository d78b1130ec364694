"""Answers that are JSON: told apart from prose, and their string values treated without other changes."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

# In valid JSON a quotation mark outside of strings only ever starts one.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_KEY_ENDS = re.compile(r"[ \t\n\r]*+:")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LENIENT = json.JSONDecoder(parse_int=str, parse_float=str)
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_LENIENT_STRING = json.JSONDecoder(strict=False)


class JsonNumber(str):
    """A number as it was written: ``1.10`` stays ``1.10``, and integers of any length stay whole."""

    __slots__ = ()


class JsonRefused(ValueError):
    """Text that is no JSON by RFC 8259, or JSON that is nested too deep; ``code`` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def is_json_container(text: str) -> bool:
    """Return whether the whole text is a JSON object or array.

    Nesting beyond the parser's limit counts as JSON: nothing then takes it for prose.
    """
    stripped = text.strip(" \t\n\r")
    if not stripped.startswith(("{", "[")):
        return False
    try:
        _LENIENT.decode(stripped)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def string_values(text: str) -> Iterator[str]:
    """Yield the string values, not the keys, of a text that ``is_json_container``, in their order."""
    for found in _STRING.finditer(text):
        if not _KEY_ENDS.match(text, found.end()):
            yield _decode(found[0])


def map_string_values(text: str, treat: Callable[[str], str]) -> str:
    """Return the JSON text with other string values; all else keeps its bytes.

    Args:
        text: A text that ``is_json_container``.
        treat: Gives the new value for a value; keys are never treated.
    """

    def replaced(found: re.Match[str]) -> str:
        if _KEY_ENDS.match(text, found.end()):
            return found[0]
        value = _decode(found[0])
        new = treat(value)
        return found[0] if new == value else encode_string(new)

    return _STRING.sub(replaced, text)


def encode_string(text: str) -> str:
    """Return a JSON string with nothing escaped that need not be; lone surrogates have no UTF-8, so stay
    escaped.
    """
    encoded = _ENCODER.encode(text)
    return encoded if encoded.isascii() else _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded)


def parse_json(text: str) -> Any:
    """Parse strict JSON; numbers become ``JsonNumber``.

    Raises:
        JsonRefused: ``not-json``, ``duplicate-key``, ``not-a-number`` (NaN, Infinity) or ``too-deep``.
    """
    try:
        return json.loads(
            text,
            parse_int=JsonNumber,
            parse_float=JsonNumber,
            parse_constant=_refuse_constant,
            object_pairs_hook=_read_object,
        )
    except JsonRefused:
        raise
    except RecursionError:
        raise JsonRefused("too-deep", "nested deeper than the parser goes") from None
    except ValueError as error:
        raise JsonRefused("not-json", str(error)) from None


def _decode(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    # Strict is off because raw control characters must not stop a text that is treated value by value.
    return str(_LENIENT_STRING.decode(token))


def _refuse_constant(name: str) -> NoReturn:
    raise JsonRefused("not-a-number", f"{name} is no JSON number")


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        times = Counter(key for key, _ in pairs)
        raise JsonRefused("duplicate-key", next(key for key, number in times.items() if number > 1))
    return value
