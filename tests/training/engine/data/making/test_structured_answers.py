import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.making.structured_answers import (
    AnswerSchema,
    NotStrictJson,
    compare_fields,
    flatten_fields,
    parse_strict_json,
    strip_outer_fence,
    to_compact_json,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from([0.5, 2.0])
    | st.text("a~/é", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "{} x", '{"a":1,"a":1}', "NaN", "[1e999]", "Infinity",
        '"\\ud800"', '{"\\u0000":1}', '["\\u0000"]',
        "[" * 101 + "]" * 101, "[" * 100_000, "1" * 5000,
    ],
)  # fmt: skip
def test_what_is_not_one_clear_json_value(text: str) -> None:
    with pytest.raises(NotStrictJson):
        parse_strict_json(text)


def test_depth_that_is_allowed() -> None:
    assert parse_strict_json("[" * 100 + "]" * 100) is not None


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ('```json\n{"a":1}\n```', '{"a":1}'),
        (' ```\n{"a":1}```\n', '{"a":1}'),
        ('{"a":"```"}', '{"a":"```"}'),
        ("```", "```"),
        ("``````", "``````"),
        ("```{}```", "```{}```"),
        ("``` a b\n{}\n```", "``` a b\n{}\n```"),
    ],
)
def test_one_outer_fence(text: str, body: str) -> None:
    assert strip_outer_fence(text) == body


def test_leaves_by_json_pointer() -> None:
    value = {"a": {"b": 1.0, "c/d": True}, "e": [], "f": ["x", {"g": None}], "h~": "1"}
    assert flatten_fields(value) == {
        "/a/b": "1", "/a/c~1d": "true", "/e": "[]", "/f/0": '"x"', "/f/1/g": "null", "/h~0": '"1"',
    }  # fmt: skip
    assert flatten_fields(3) == {"": "3"}


@pytest.mark.parametrize(
    ("left", "right", "agreement"),
    [
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, 1.0),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, 1 / 2),
        ({"a": 1}, {"a": True}, 0.0),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, 1 / 3),  # a agrees; b and c stand on one side each
        ({"a": ["x", "y"]}, {"a": ["x"]}, 1 / 2),  # /a/0 of /a/0, /a/1
        ({}, {}, 1.0),  # the one leaf {}
    ],
)
def test_field_agreement(left: Any, right: Any, agreement: float) -> None:
    assert compare_fields(flatten_fields(left), flatten_fields(right)) == pytest.approx(agreement, abs=1e-12)


@given(JSON, JSON)
def test_agreement_is_symmetric_and_full_with_itself(left: Any, right: Any) -> None:
    a, b = flatten_fields(left), flatten_fields(right)
    assert compare_fields(a, a) == 1.0
    assert compare_fields(a, b) == compare_fields(b, a)
    assert 0.0 <= compare_fields(a, b) <= 1.0


@given(JSON)
def test_strict_reading_gives_back_what_was_written(value: Any) -> None:
    assert json.dumps(parse_strict_json(to_compact_json(value))) == json.dumps(value)


def test_schema_orders_keys_and_finds_the_first_fault() -> None:
    inner = {"type": "object", "properties": {"y": {"type": "integer"}, "x": {}}}
    schema = AnswerSchema(
        {"properties": {"b": {"type": "array", "items": inner}, "a": {}}, "required": ["a"]}
    )
    value = {"extra": 1, "a": "é", "b": [{"x": 1, "y": 2}]}
    assert schema.to_text(value) == '{"b":[{"y":2,"x":1}],"a":"é","extra":1}'
    assert schema.find_fault(value) == ""
    assert "'a' is a required property" in schema.find_fault({})
    assert schema.find_fault({"a": 1, "b": [{"y": "2"}]}).startswith("$.b[0].y")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"$ref": "https://example.com/s.json"},
        {"$ref": "#/$defs/none"},
        {"items": {"$ref": "x"}},
    ],
)
def test_schemas_that_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at type|leads to nothing"):
        AnswerSchema(schema)


def test_references_into_the_schema_itself() -> None:
    schema = AnswerSchema({"$defs": {"a": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/a"}}})
    assert schema.find_fault({"n": "1"}) != ""
    assert schema.find_fault({"n": 1}) == ""


def test_a_schema_without_end_is_a_fault_not_a_crash() -> None:
    assert "cannot be applied" in AnswerSchema({"$ref": "#"}).find_fault({})
