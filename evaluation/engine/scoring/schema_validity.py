"""Is a parsed answer valid under the suite's JSON Schema (2020-12)?"""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError

MAX_REPORTED_ERRORS = 10
"""Errors of one output beyond this many are left out of its row."""

MAX_MESSAGE_CHARACTERS = 300
"""jsonschema quotes the whole instance in its messages; a row needs only the beginning."""


class SchemaValidator:
    """Validates answers against one JSON Schema.

    Args:
        schema: JSON Schema 2020-12. References to other documents are never fetched.

    Raises:
        ValueError: The schema itself is not valid.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Check the schema and build its validator."""
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            raise ValueError(f"at {_path(error)}: {error.message}") from error
        self._validator = Draft202012Validator(schema)

    def errors(self, value: Any) -> list[dict[str, str]]:
        """Return what is wrong with a parsed answer as ``{"path", "message"}``; empty when it is valid."""
        found = sorted(self._validator.iter_errors(value), key=lambda error: error.json_path)
        return [
            {"path": error.json_path, "message": error.message[:MAX_MESSAGE_CHARACTERS]}
            for error in found[:MAX_REPORTED_ERRORS]
        ]


def _path(error: ValidationError | SchemaError) -> str:
    return "/".join(str(part) for part in error.absolute_path) or "the root"
