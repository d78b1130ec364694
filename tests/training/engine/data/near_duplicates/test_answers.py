# ruff: noqa: RUF001 (full-width characters are what is tested)
import pytest

from training.engine.data.near_duplicates.answers import (
    digest_answer,
    is_same_answer,
    read_answer,
    read_answer_fields,
)

LONG = "We have sent the replacement to the address in your account and it should arrive within three days"


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        ('{"a": 1, "b": [true]}', '{"b":[true],"a":1.0}', True),
        ('{"a": "x"}', '```json\n{"a": "x"}\n```', True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": "x"}', '{"a": "X"}', False),
        ('{"a": 1}', "a 1", False),
        ("好的，谢谢。", "好的,谢谢", True),
        ("ＹＥＳ", "yes!", True),
        ("yes", "no", False),
        (None, " ", True),
        (None, "yes", False),
        # 17 shingles; a changed last word leaves 16 of 18: 0.89. One in the middle leaves 14 of 20: 0.7.
        (LONG, LONG.replace("days", "weeks"), True),
        (LONG, LONG.replace("account", "letter"), False),
    ],
)
def test_same_in_substance(left: str | None, right: str | None, is_same: bool) -> None:
    first, second = digest_answer(read_answer(left)), digest_answer(read_answer(right))
    assert is_same_answer(first, second, threshold=0.85) is is_same
    assert is_same_answer(second, first, threshold=0.85) is is_same


def test_large_objects_with_another_label_differ() -> None:
    fields = ", ".join(f'"field number {i}": "value number {i}"' for i in range(40))
    left, right = read_answer(f'{{{fields}, "x": "yes"}}'), read_answer(f'{{{fields}, "x": "no"}}')
    assert not is_same_answer(digest_answer(left), digest_answer(right), threshold=0.85)


def test_labels_leave_out_free_text() -> None:
    left = read_answer(f'{{"urgency": "high", "summary": "{LONG}"}}')
    right = read_answer(f'{{"urgency": "high", "summary": "{LONG[:60]}"}}')
    assert left.labels == right.labels
    assert left.labels != read_answer('{"urgency": "low"}').labels


@pytest.mark.parametrize("text", ["[1", '{"a":1,"a":2}', "42", '"text"', "", "[" * 100_000])
def test_no_json_object_or_list(text: str) -> None:
    assert read_answer_fields(text) is None
