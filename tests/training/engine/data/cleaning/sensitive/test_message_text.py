import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.cleaning.sensitive.message_text import Edit, MessageText

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=12,
)


def test_prose_is_its_own_view() -> None:
    text = MessageText("电话 13912345678")
    assert text.view == "电话 13912345678"
    assert text.edit([Edit(start=3, end=14, replacement="[PHONE_1]")]) == "电话 [PHONE_1]"
    assert text.is_editable(0, 5) and not text.is_json_number(3, 14)


def test_json_shows_each_value_with_its_key() -> None:
    text = MessageText('{"护照号": "E1",\n "n": [7, "a\\"b"], "ok": true}')
    assert text.view.split("\0") == ["", "护照号", "护照号: E1", "n", "n: 7", 'n: a"b', "ok"]


def test_json_is_edited_in_place() -> None:
    text = MessageText('{"a":"x 1 y",  "b": 12, "c":"\\u00e9"}')
    start = text.view.index("1")
    number = text.view.index("12")
    edits = [
        Edit(start=start, end=start + 1, replacement='"q"'),
        Edit(start=number, end=number + 2, replacement="[PHONE_1]"),
    ]
    assert text.is_json_number(number, number + 2)
    assert text.edit(edits) == '{"a":"x \\"q\\" y",  "b": "[PHONE_1]", "c":"\\u00e9"}'


def test_the_repeated_key_is_no_content() -> None:
    text = MessageText('{"key":"value"}')
    assert not text.is_editable(text.view.index("key: "), text.view.index("key: ") + 3)
    with pytest.raises(ValueError, match="outside"):
        text.edit([Edit(start=0, end=2, replacement="")])


def test_broken_json_is_prose() -> None:
    assert MessageText('{"a": "b"').view == '{"a": "b"'
    assert MessageText("[" * 100_000).view == "[" * 100_000


@given(JSON, st.booleans(), st.sampled_from([None, 2]))
def test_editing_every_string_gives_valid_json(value: object, ensure_ascii: bool, indent: int | None) -> None:
    content = json.dumps([value], ensure_ascii=ensure_ascii, indent=indent)
    text = MessageText(content)
    assert text.edit([]) == content
    places = [place for place in range(len(text.view)) if text.is_editable(place, place + 1)]
    edited = text.edit([Edit(start=place, end=place + 1, replacement='é"\\') for place in places[:3]])
    json.loads(edited)
