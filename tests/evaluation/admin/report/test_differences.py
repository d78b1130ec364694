"""Differences between an output and what it is compared with."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from evaluation.admin.report.differences import compare_outputs, mark_tokens


def marks(output: str, anchor: str, scored: dict[str, dict[str, bool]] | None = None) -> dict[str, str]:
    return {str(cell.name): cell.mark for cell in compare_outputs(output, anchor, scored).fields}


def test_fields_of_objects() -> None:
    anchor = '{"a": 1, "b": "x", "c": null}'
    assert marks('{"b": "y", "a": 1.0, "d": [1]}', anchor) == {
        "a": "same",
        "b": "different",
        "c": "missing",
        "d": "extra",
    }


def test_the_scorer_decides_over_right_and_wrong() -> None:
    # The suite's normalisers may take two spellings for the same, or a rule may see more than equality.
    scored = {"a": {"correct": True}, "b": {"correct": False}}
    assert marks('{"a": "HIGH", "b": "x"}', '{"a": "high", "b": "x"}', scored) == {
        "a": "same",
        "b": "different",
    }


def test_a_fence_around_the_object() -> None:
    assert marks('```json\n{"a": 1}\n```', '{"a": 1}') == {"a": "same"}


def test_without_anchor_nothing_is_marked() -> None:
    assert [cell.mark for cell in compare_outputs('{"a": 1}', None).fields] == ["plain"]
    assert compare_outputs("text", None).text == "text"


def test_duplicate_keys_are_shown_as_text() -> None:
    comparison = compare_outputs('{"a": 1, "a": 2}', '{"a": 1}')
    assert not comparison.fields
    assert "&quot;a&quot;" in comparison.text


def test_tokens() -> None:
    assert mark_tokens("the red car stops", "the blue car stops") == (
        "the <del>blue</del><ins>red</ins> car stops"
    )
    assert mark_tokens("发票金额对", "发票金额错") == "发票金额<del>错</del><ins>对</ins>"


def test_texts_with_little_in_common_have_no_marks() -> None:
    assert mark_tokens("I cannot help", '{"urgency": "high"}') == "I cannot help"


def test_hostile_keys_and_values_are_escaped() -> None:
    comparison = compare_outputs('{"<b>": "<script>x</script>"}', '{"a": "<i>"}')
    shown = "".join(str(cell.name) + str(cell.value) for cell in comparison.fields)
    assert "<b>" not in shown
    assert "<script" not in shown


def test_repeated_tokens_do_not_take_long() -> None:
    started = time.monotonic()
    mark_tokens("a b " * 450, "b a " * 450)
    mark_tokens("x " * 5000, "y " * 5000)
    assert time.monotonic() - started < 5


@given(st.text(), st.text())
def test_only_our_own_tags(output: str, anchor: str) -> None:
    shown = str(mark_tokens(output, anchor))
    rest = re.sub(
        r"</?(?:ins|del)>|<span class=\"(?:hidden-character\" title=\"[^\"<>]*|line-end)\">|</span>",
        "",
        shown,
    )
    assert "<" not in rest
