from typing import Any

import pytest

from training.engine.data.examples import Example
from training.engine.data.intake.building import ExampleBuilder, FileContext
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.shapes.detection import choose_shape

TURNS = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]


def build(row: dict[str, Any], *, context: dict[str, Any] | None = None, **raw: Any) -> Example:
    settings = IntakeSettings.from_json(raw)
    shape = choose_shape([row], settings).shape
    assert shape is not None
    builder = ExampleBuilder(
        shape, settings, FileContext(**{"name": "zh/a.jsonl", "stem": "zh-a", **(context or {})})
    )
    return builder.build(row, 17).example


def code_of(row: dict[str, Any], **raw: Any) -> str:
    with pytest.raises(RowFault) as caught:
        build(row, **raw)
    return caught.value.code


def test_a_line_of_ours_stays_as_it_is() -> None:
    line = {
        "id": "x1",
        "messages": TURNS,
        "tags": {"channel": "app"},
        "category": "refund",
        "reference_source": "person",
        "confirmed_by": "Li",
        "group": "c7",
        "anything": {"else": [1]},
        "origin": {"kind": "template", "file": "t.json", "template": 3},
    }
    example = build(line)
    # Given keys of the origin stay; what is missing is added.
    assert example.to_json() == {
        **line,
        "origin": {"kind": "template", "file": "t.json", "row": 17, "template": 3},
    }
    assert list(example.fields) == list(line)[2:]


def test_ids() -> None:
    assert build({"messages": TURNS}).example_id == "zh-a-0000017"
    assert build({"id": "", "messages": TURNS}).example_id == "zh-a-0000017"
    assert build({"id": 12, "messages": TURNS}).example_id == "12"
    assert build({"id": 12, "uid": "u", "messages": TURNS}, columns={"id": "uid"}).example_id == "u"
    assert code_of({"id": 1.5, "messages": TURNS}) == "id-invalid"


def test_what_lines_keep_and_tables_leave_out() -> None:
    row = {"question": "q", "answer": "a", "category": "c", "extra": 1, "kept": "k", "group": 9}
    assert build(row).fields == {
        "category": "c",
        "extra": 1,
        "kept": "k",
        "group": "9",
        "origin": {"kind": "file", "file": "zh/a.jsonl", "row": 17},
    }
    table = build(row, context={"keeps_all": False}, keep=["kept", "answer"])
    assert table.fields == {
        "answer": "a",
        "category": "c",
        "kept": "k",
        "group": "9",
        "origin": {"kind": "file", "file": "zh/a.jsonl", "row": 17},
    }


def test_mapped_columns_take_the_place_of_known_keys() -> None:
    row = {
        "q": "x",
        "topic": "billing",
        "category": "old",
        "customer": 7,
        "city": "北京",
        "vip": True,
        "none": None,
    }
    example = build(
        row,
        columns={"input": "q", "answer": "topic", "category": "topic", "group": "customer"},
        tags={"城市": "city", "vip": "vip", "none": "none"},
    )
    assert example.answer == "billing"
    assert example.fields == {
        "category": "billing",
        "group": "7",
        "tags": {"城市": "北京", "vip": "true"},
        "origin": {"kind": "file", "file": "zh/a.jsonl", "row": 17},
    }


def test_tags_of_columns_join_given_tags() -> None:
    assert build({"messages": TURNS, "tags": {"a": "1"}, "b": 2}, tags=["b"]).tags == {"a": "1", "b": "2"}
    assert code_of({"messages": TURNS, "b": [2]}, tags=["b"]) == "tags-invalid"


def test_defaults_for_rows_that_do_not_say() -> None:
    raw: dict[str, Any] = {"reference_source": "person", "confirmed_by": "Wang"}
    example = build({"messages": TURNS, "reference_source": "model"}, **raw)
    assert (example.fields["reference_source"], example.fields["confirmed_by"]) == ("model", "Wang")
    example = build({"messages": TURNS, "confirmed_by": ""}, **raw)
    assert (example.fields["reference_source"], example.fields["confirmed_by"]) == ("person", "Wang")


def test_system_prompt_goes_before_rows_without_one() -> None:
    assert build({"messages": TURNS}, system_prompt="S").messages[0].content == "S"
    own = [{"role": "system", "content": "own"}, *TURNS]
    assert build({"messages": own}, system_prompt="S").messages[0].content == "own"
    general = build({"messages": TURNS, "role": "general"}, system_prompt="S")
    assert general.is_general
    assert general.messages[0].role == "user"
    in_folder = build({"messages": TURNS}, system_prompt="S", context={"is_general": True})
    assert (in_folder.is_general, in_folder.fields["role"], len(in_folder.messages)) == (True, "general", 2)


def test_rows_without_answer() -> None:
    assert build({"messages": TURNS[:1]}).answer is None
    assert code_of({"messages": TURNS[:1]}, needs_answer=True) == "answer-missing"


def test_adoption_and_rework() -> None:
    settings = IntakeSettings.from_json(
        {
            "adoption": {"column": "adopted", "values": [True, "采纳"]},
            "rework": {"column": "reopened", "values": ["true"]},
        }
    )
    row = {"messages": TURNS, "adopted": True}
    shape = choose_shape([row], settings).shape
    assert shape is not None
    builder = ExampleBuilder(shape, settings, FileContext(name="a", stem="a", split="train"))
    assert builder.find_reason_to_leave_out(row) is None
    assert builder.find_reason_to_leave_out({**row, "adopted": "采纳", "reopened": False}) is None
    assert builder.find_reason_to_leave_out({**row, "adopted": None}) == "not-adopted"
    assert builder.find_reason_to_leave_out({"messages": TURNS}) == "not-adopted"
    assert builder.find_reason_to_leave_out({**row, "reopened": True}) == "reworked"
    assert builder.build(row, 1).example.origin == {"kind": "log", "file": "a", "row": 1, "split": "train"}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"tags": "a;b"}, "tags-invalid"),
        ({"category": "x" * 65}, "category-invalid"),
        ({"reference_source": "me"}, "reference-source-invalid"),
        ({"group": ["c"]}, "group-invalid"),
    ],
)
def test_known_keys_are_checked(row: dict[str, Any], code: str) -> None:
    assert code_of({"messages": TURNS, **row}) == code


def test_messages_beside_another_shape_never_replace_the_conversation() -> None:
    example = build({"instruction": "i", "output": "o", "messages": None})
    assert example.to_json()["messages"][0]["content"] == "i"
