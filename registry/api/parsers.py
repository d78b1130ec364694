"""JSON bodies, read with a limit and strictly.

Besides what is no JSON, these are refused because a part behind the view could read them differently or not
at all: keys given twice, NaN and infinity, NUL characters and lone surrogates (PostgreSQL stores neither).
"""

import json
import re
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from registry.artifacts.findings import shown
from registry.errors import PayloadTooLarge

MAX_JSON_BYTES = 4 * 1024 * 1024
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class LimitedJsonParser(BaseParser):
    """Parses `application/json` of at most `MAX_JSON_BYTES`."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The JSON value of the body.

        Raises:
            PayloadTooLarge: the body has more than `MAX_JSON_BYTES`.
            ParseError: it is no strict JSON in UTF-8.
        """
        content = stream.read(MAX_JSON_BYTES + 1)
        if len(content) > MAX_JSON_BYTES:
            raise PayloadTooLarge("body-too-large", limit_bytes=MAX_JSON_BYTES)
        try:
            value = json.loads(content, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
            _refuse_unstorable(value)
        except RecursionError as error:
            raise ParseError("The body is nested too deeply.") from error
        except ValueError as error:
            raise ParseError(f"The body is not the JSON that is expected: {error}") from error
        return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number.")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"The key {shown(twice)!r} is given twice.")
    return value


def _refuse_unstorable(value: Any) -> None:
    match value:
        case str():
            if _UNSTORABLE.search(value):
                raise ValueError("A text holds a NUL character or half of a surrogate pair.")
        case dict():
            for key, item in value.items():
                _refuse_unstorable(key)
                _refuse_unstorable(item)
        case list():
            for item in value:
                _refuse_unstorable(item)
