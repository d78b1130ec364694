"""Is a parsed answer valid under the suite's JSON Schema (2020-12)?"""

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing.jsonschema import EMPTY_REGISTRY

MAX_REPORTED_ERRORS = 10
"""Errors of one output beyond this many are left out of its row."""

MAX_MESSAGE_CHARACTERS = 300
"""jsonschema quotes the whole instance in its messages; a row needs only the beginning."""


class SchemaValidator:
    """Validates answers against one JSON Schema.

    Args:
        schema: JSON Schema 2020-12. Only references into itself are allowed: a schema that is fetched would
            let a suite change under its digest.

    Raises:
        ValueError: The schema itself is not valid, or refers to something that is not in it.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Check the schema and build its validator."""
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            path = "/".join(str(part) for part in error.absolute_path) or "the root"
            raise ValueError(f"at {path}: {error.message}") from error
        for reference in _references(schema):
            if not _is_inside(schema, reference):
                raise ValueError(f"the reference {reference!r} leads to nothing inside the schema")
        # jsonschema's default registry would fetch remote references.
        self._validator = Draft202012Validator(schema, registry=EMPTY_REGISTRY)

    def errors(self, value: Any) -> list[dict[str, str]]:
        """Return what is wrong with a parsed answer as ``{"path", "message"}``; empty when it is valid."""
        found = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)
        return [
            {"path": error.json_path, "message": error.message[:MAX_MESSAGE_CHARACTERS]}
            for error in found[:MAX_REPORTED_ERRORS]
        ]


def resolve_pointer(root: Mapping[str, Any], reference: str) -> Any:
    """Return what a reference such as ``#/$defs/slots`` leads to, or None when it leads to nothing."""
    node: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, Mapping) else None
    return node


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


def _is_inside(schema: Mapping[str, Any], reference: str) -> bool:
    if reference == "#" or reference.startswith("#/"):
        return isinstance(resolve_pointer(schema, reference), Mapping | bool)
    return False
