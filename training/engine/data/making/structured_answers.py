"""Answers that are JSON: strict reading, a schema, one fixed form, and how far two of them agree."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from registry.artifacts.findings import shown

MAX_NESTING = 100
"""Deeper values are refused: no answer of a task is so deep, and later stages recurse."""

_FENCE = "```"
# Made once: json.dumps makes one for every call that is not the default one.
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class NotStrictJson(ValueError):
    """The text is not one clear JSON value."""


def holds_unstorable(text: str) -> bool:
    """Return whether a text holds a NUL or half of a surrogate pair, which no dataset file may hold."""
    return _UNSTORABLE.search(text) is not None


def strip_outer_fence(text: str) -> str:
    """Return the text without white space around it and without one code fence around the whole."""
    body = text.strip()
    if not (body.startswith(_FENCE) and body.endswith(_FENCE) and len(body) > 2 * len(_FENCE)):
        return body
    first, line_feed, rest = body[len(_FENCE) : -len(_FENCE)].partition("\n")
    if not line_feed:
        return body
    return rest.strip() if not first.strip() or first.strip().isalnum() else body


def parse_strict_json(text: str) -> Any:
    """Return the one JSON value that the whole text is.

    Raises:
        NotStrictJson: not JSON, text after the value, a key twice in one object, NaN, a number that is not
            finite, more than 100 levels, or a string with a NUL or half of a surrogate pair.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object_of_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
    except (ValueError, RecursionError) as error:
        raise NotStrictJson(shown(error)) from error
    level, depth = [value], 0
    while level:
        if any(isinstance(item, str) and holds_unstorable(item) for item in level):
            raise NotStrictJson("a string holds a NUL or half of a surrogate pair")
        if depth >= MAX_NESTING and any(isinstance(item, dict | list) for item in level):
            raise NotStrictJson(f"nested deeper than {MAX_NESTING} levels")
        level, depth = [part for item in level for part in _parts(item)], depth + 1
    return value


class AnswerSchema:
    """A JSON Schema (2020-12) that answers must fulfil, and the order of their keys.

    Attributes:
        text: The schema as compact JSON.

    Args:
        schema: The schema. References may be ``#`` or JSON pointers into itself (``#/$defs/name``) only.

    Raises:
        ValueError: It is not a valid schema, or refers to something that is not in it.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            path = "/".join(str(part) for part in error.absolute_path) or "the root"
            raise ValueError(f"at {shown(path)}: {shown(error.message)}") from error
        for reference in _references(schema):
            if not _leads_inside(schema, reference):
                raise ValueError(f"the reference {shown(reference)!r} leads to nothing inside the schema")
        self.text = to_compact_json(schema)
        self._schema = schema
        # The default registry would fetch remote references.
        self._validator = Draft202012Validator(schema, registry=EMPTY_REGISTRY)

    def find_fault(self, value: Any) -> str:
        """Return the first thing that is wrong with an answer, for people; "" when it is valid."""
        try:
            errors = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)
        except (Unresolvable, RecursionError) as error:
            return f"the schema cannot be applied: {shown(error)}"
        return f"{shown(errors[0].json_path)}: {shown(errors[0].message)}" if errors else ""

    def to_text(self, value: Any) -> str:
        """Return an answer in its one form: compact, keys in the order of the schema's ``properties``."""
        return to_compact_json(_order_keys(value, self._schema))


def to_compact_json(value: Any) -> str:
    """Return JSON without white space, keys in their order, letters as they are."""
    return _COMPACT.encode(value)


def flatten_fields(value: Any) -> dict[str, str]:
    """Return the leaves of a JSON value: JSON pointer to compact JSON; 1 and 1.0 are the same leaf.

    ``{"a": {"b": 1.0}, "c": []}`` gives ``{"/a/b": "1", "/c": "[]"}``. Lists are compared place by place.
    """
    return dict(_leaves(value, ""))


def compare_fields(left: Mapping[str, str], right: Mapping[str, str]) -> float:
    """Return the field agreement, 0-1: leaves that both have with equal value over all leaves of both."""
    names = left.keys() | right.keys()
    num_equal = sum(name in left and name in right and left[name] == right[name] for name in names)
    return num_equal / len(names) if names else 1.0


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}/{number}")
    elif isinstance(value, float) and value.is_integer():
        yield path, str(int(value))
    else:
        yield path, to_compact_json(value)


def _order_keys(value: Any, schema: Any) -> Any:
    rules = schema if isinstance(schema, Mapping) else {}
    if isinstance(value, list):
        return [_order_keys(item, rules.get("items")) for item in value]
    if not isinstance(value, dict):
        return value
    properties = rules.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    names = [name for name in known if name in value] + [name for name in value if name not in known]
    return {name: _order_keys(value[name], known.get(name)) for name in names}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _leads_inside(schema: Mapping[str, Any], reference: str) -> bool:
    if not reference.startswith("#/"):
        return reference == "#"
    node: Any = schema
    for part in reference.removeprefix("#/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, Mapping) else None
    return isinstance(node, Mapping | bool)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def _object_of_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise NotStrictJson(f"the key {shown(key)!r} stands twice in one object")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrictJson(f"{name} is not JSON")


def _finite_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotStrictJson("a number is too large")
    return value
