import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.engine.json_text import (
    MAX_NESTING,
    DuplicateKeyError,
    JsonTextError,
    find_unstorable_text,
    json_equal,
    make_storable,
    parse_json,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
@settings(deadline=None)
def test_what_json_writes_is_read_back_equal(value: object) -> None:
    assert json_equal(parse_json(json.dumps(value)), value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",  # overflows to infinity in Python
        '{"a": \uff11}',  # a full-width digit outside a string is no JSON number
        '{"a": 1} and more',
        "{'a': 1}",
        '{"a": 1,}',
        '\ufeff{"a": 1}',
        '{"a": "line\nbreak"}',
        "[" * (MAX_NESTING + 2) + "]" * (MAX_NESTING + 2),
        "[" * 100_000,
        "9" * 5000,  # over Python's limit for integers
    ],
)
def test_unclear_text_is_refused(text: str) -> None:
    with pytest.raises(JsonTextError):
        parse_json(text)


def test_a_duplicate_key_is_named() -> None:
    with pytest.raises(DuplicateKeyError, match="timeRange"):
        parse_json('{"slots": {"timeRange": "a", "timeRange": "b"}}')


def test_nesting_up_to_the_limit_is_read() -> None:
    assert parse_json("[" * MAX_NESTING + "]" * MAX_NESTING) is not None


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ([1, True], [1, 1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": None}, {}, False),
        ("1", 1, False),
        (None, None, True),
    ],
)
def test_equality_is_that_of_json(left: object, right: object, equal: bool) -> None:
    assert json_equal(left, right) is equal
    assert json_equal(right, left) is equal


@pytest.mark.parametrize("value", ["a\x00b", {"a\x00": 1}, [["\ud800"]], {"a": {"b": "\udfff"}}])
def test_text_that_a_database_cannot_hold_is_found(value: object) -> None:
    assert find_unstorable_text(value) is not None


def test_ordinary_text_can_be_stored() -> None:
    assert find_unstorable_text({"a": ["\U0001f600", "\uff11", "tab\t"], "b": 1}) is None


@given(JSON_VALUES)
@settings(deadline=None)
def test_anything_can_be_made_storable(value: object) -> None:
    assert find_unstorable_text(make_storable(value)) is None


def test_making_storable_leaves_a_visible_mark() -> None:
    assert make_storable({"a\x00": ["\ud800", "plain \U0001f600", 1]}) == {
        "a\u2400": ["\ufffd", "plain \U0001f600", 1]
    }
