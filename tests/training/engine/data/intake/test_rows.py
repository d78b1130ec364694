import pytest

from training.engine.data.intake.rows import (
    FileRefused,
    RowFault,
    check_storable,
    count_characters,
    make_excerpt,
)


def test_excerpts_are_short_and_printable() -> None:
    assert make_excerpt(b"\x00\xff" + b"a" * 1000).startswith("\\x00\\xffaaa")
    assert len(make_excerpt({"text": "x" * 10_000, "list": [["y" * 10_000]], "deep": {"a": 1}})) <= 120
    assert make_excerpt({"a": [], "b": 1}) == "a: [], b: 1"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"a": ["x\x00"]}, "nul-character"),
        ({"键\ud800": 1}, "lone-surrogate"),
        (("好\udfff",), "lone-surrogate"),
    ],
)
def test_texts_that_cannot_be_stored(value: object, code: str) -> None:
    with pytest.raises(RowFault) as caught:
        check_storable(value)
    assert caught.value.code == code


def test_storable_values_pass() -> None:
    check_storable({"a": ["😀", "\u2028", 1, None, 2.5, True]})


def test_characters_are_counted_through_lists_and_objects() -> None:
    # By hand: key "ab" 2, list itself 1, "xyz" 3, 7 1; the object itself 1.
    assert count_characters({"ab": ["xyz", 7]}) == 8


def test_a_refusal_keeps_its_place() -> None:
    refused = FileRefused("x", "m", where="state.json").at("a.jsonl")
    assert refused.fault.where == "state.json"
    assert FileRefused("x", "m").at("a.jsonl").fault.where == "a.jsonl"
