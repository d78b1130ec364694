import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.strict_json import (
    check_decoded,
    decode_at,
    is_deeper,
    parse_row,
    parse_value,
)

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), inner, max_size=4
        )
    ),
    max_leaves=20,
)


def code_of(text: str, max_depth: int = 8) -> str:
    with pytest.raises(RowFault) as caught:
        parse_row(text, max_depth=max_depth)
    return caught.value.code


@given(JSON_VALUES, st.booleans())
def test_every_plain_json_value_comes_back(value: Any, is_ascii: bool) -> None:
    assert parse_value(json.dumps(value, ensure_ascii=is_ascii), max_depth=64) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{'a': 1}", "not-json"),
        ('{"a": 1} {"b": 2}', "not-json"),
        ("", "not-json"),
        ("[1]", "not-an-object"),
        ("null", "not-an-object"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "duplicate-key"),
        ('{"a": NaN}', "number-not-finite"),
        ('{"a": -Infinity}', "number-not-finite"),
        ('{"a": 1e999}', "number-not-finite"),
        ('{"a": "\\u0000"}', "nul-character"),
        ('{"a": "\x00"}', "nul-character"),
        ('{"a": "\\ud83d"}', "lone-surrogate"),
        ('{"\\udc00": 1}', "lone-surrogate"),
        ('{"a": ' + "1" * 5000 + "}", "not-json"),
        ('{"a":' * 9 + "1" + "}" * 9, "too-deep"),
        ("[" * 100_000, "too-deep"),
        ('{"a":' * 100_000, "too-deep"),
    ],
)
def test_refused_rows(text: str, code: str) -> None:
    assert code_of(text) == code


def test_paired_surrogates_and_line_separators_are_texts() -> None:
    assert parse_row('{"a": "\\ud83d\\ude00\u2028"}', max_depth=2) == {"a": "😀\u2028"}


def test_depth_is_counted_outside_strings() -> None:
    assert not is_deeper('{"a": "[[[[[[[[", "b": "\\"{{{{"}', 1)
    assert is_deeper('{"a": [1]}', 1)
    assert not is_deeper('{"a": [1]}', 2)
    # Side by side is not deep.
    assert not is_deeper("[" + "[]," * 50 + "[]]", 2)


def test_decoding_inside_a_longer_text() -> None:
    text = '[{"a": 1}, {"b": NaN}, {"c'
    assert decode_at(text, 1) == ({"a": 1}, 9)
    assert decode_at(text, 11) is None
    assert decode_at(text, 23) is None
    with pytest.raises(RowFault):
        check_decoded('{"a": {"b": 1}}', {"a": {"b": 1}}, max_depth=1)
