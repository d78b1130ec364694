import pytest

from training.engine.data.checks.answer_reading import (
    count_words,
    has_cjk,
    iterate_leaves,
    iterate_objects,
    read_json_answer,
)


@pytest.mark.parametrize(
    "answer", ["text", "42", "true", '"a"', '{"a": 1', "", "[" * 100_000, '{"a": 1} and more']
)
def test_text_is_no_json(answer: str) -> None:
    assert read_json_answer(answer) is None


def test_repeated_keys_are_seen_at_any_depth() -> None:
    answer = read_json_answer(' {"a": [{"b": 1, "b": 2}]}')
    assert answer is not None and answer.has_repeated_keys and answer.value == {"a": [{"b": 2}]}


def test_leaves_and_objects() -> None:
    value = {"a": 1, "b": {"c": [None, "x"]}, "d": [{"e": True}]}
    assert list(iterate_leaves(value)) == [
        ("answer/a", 1),
        ("answer/b/c[]", None),
        ("answer/b/c[]", "x"),
        ("answer/d[]/e", True),
    ]
    assert [path for path, _ in iterate_objects(value)] == ["answer", "answer/b", "answer/d[]"]


def test_depth_is_bounded() -> None:
    value: object = "deep"
    for _ in range(900):
        value = [value]
    assert list(iterate_leaves(value)) == []


def test_words() -> None:
    assert count_words("one two, three") == 3
    assert count_words("请每天早上重启一次路由器") == 8
    assert has_cjk("a 中 b") and not has_cjk("abc")
