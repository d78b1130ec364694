import pytest

from evaluation.engine.scoring.schema_validity import MAX_REPORTED_ERRORS, SchemaValidator

SCHEMA = {
    "type": "object",
    "properties": {
        "urgency": {"enum": ["low", "high"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["urgency"],
    "additionalProperties": False,
}


def test_valid() -> None:
    assert SchemaValidator(SCHEMA).errors({"urgency": "low", "tags": []}) == []


def test_every_error_has_a_path_and_a_message() -> None:
    errors = SchemaValidator(SCHEMA).errors({"urgency": "medium", "tags": [1], "other": 1})
    assert [error["path"] for error in errors] == ["$", "$.tags[0]", "$.urgency"]
    assert all(error["message"] for error in errors)


def test_many_errors_are_cut() -> None:
    assert len(SchemaValidator(SCHEMA).errors({"urgency": "low", "tags": [1] * 100})) == MAX_REPORTED_ERRORS


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="type"):
        SchemaValidator({"type": "objekt"})


@pytest.mark.parametrize(
    "reference", ["https://example.invalid/schema.json", "#/$defs/missing", "other.json#/a"]
)
def test_a_reference_that_leaves_the_schema_is_refused(reference: str) -> None:
    with pytest.raises(ValueError, match="leads to nothing"):
        SchemaValidator({"properties": {"a": {"$ref": reference}}, "$defs": {}})


def test_a_reference_inside_the_schema_is_followed() -> None:
    validator = SchemaValidator(
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}
    )
    assert len(validator.errors({"a": 1})) == 1
