import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.cleaning.json_answers import (
    JsonRefused,
    encode_string,
    is_json_container,
    map_string_values,
    parse_json,
    string_values,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', True),
        (' [1, "x"]\n', True),
        ("{}", True),
        ("[" * 100_000, True),
        ("42", False),
        ('"text"', False),
        ("null", False),
        ("{a: 1}", False),
        ('{"a": 1} and more', False),
        ("", False),
    ],
)
def test_is_json_container(text: str, expected: bool) -> None:
    assert is_json_container(text) is expected


def test_only_values_change_and_all_else_keeps_its_bytes() -> None:
    text = '{ "key" : "key", "n": [1.10, 1e5, "a\\"b"],\n"\\u4f60": "\\u4f60" }'
    assert list(string_values(text)) == ["key", 'a"b', "你"]
    # "你" stays written as an escape, since its value did not change.
    assert map_string_values(text, lambda value: value.replace("key", "KEY")) == text.replace(
        ': "key"', ': "KEY"'
    )


@given(VALUES.filter(lambda value: isinstance(value, dict | list)), st.booleans())
def test_mapping_reaches_every_value(value: object, ascii_only: bool) -> None:
    def upper(item: object) -> object:
        if isinstance(item, str):
            return f"<{item}>"
        if isinstance(item, list):
            return [upper(part) for part in item]
        return {key: upper(part) for key, part in item.items()} if isinstance(item, dict) else item

    text = json.dumps(value, ensure_ascii=ascii_only)
    assert json.loads(map_string_values(text, lambda item: f"<{item}>")) == upper(value)


def test_lone_surrogates_stay_escaped() -> None:
    assert encode_string("中\ud800\n") == '"中\\ud800\\n"'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"a":1,"b":{"x":1,"x":2}}', "duplicate-key"),
        ('{"a":NaN}', "not-a-number"),
        ('{"a":-Infinity}', "not-a-number"),
        ('{"a":1', "not-json"),
        ("[" * 100_000, "too-deep"),
    ],
)
def test_refusals(text: str, code: str) -> None:
    with pytest.raises(JsonRefused) as refused:
        parse_json(text)
    assert refused.value.code == code


def test_numbers_keep_their_literals() -> None:
    digits = "1" * 5000  # more than int() takes by default
    assert parse_json(f"[1.10, -0, 1E5, {digits}]") == ["1.10", "-0", "1E5", digits]
