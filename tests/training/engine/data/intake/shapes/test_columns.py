from typing import Any

import pytest

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.columns import ColumnsShape
from training.engine.data.intake.shapes.shape import ANSWER_WRITTEN_AS_JSON


def read(columns: dict[str, str], **row: Any) -> str:
    return " ".join(message.role[0] + message.content for message in ColumnsShape(columns).read(row).messages)


def test_input_answer_system_and_history() -> None:
    columns = {"input": "问题", "answer": "答案", "system": "设定", "history": "之前"}
    row = {"问题": "q", "答案": "a", "设定": "s", "之前": [["p", "r"]], "other": 1}
    assert read(columns, **row) == "ss up ar uq aa"
    assert read(columns, 问题="q", 答案="a") == "uq aa"
    assert read({"input": "x"}, x="q") == "uq"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"意图": "退款", "n": [1]}, '{"意图":"退款","n":[1]}'),
        (True, "true"),
        (7, "7"),
        (["a"], '["a"]'),
    ],
)
def test_answers_that_are_no_texts_become_json(answer: Any, text: str) -> None:
    made = ColumnsShape({"input": "q", "answer": "a"}).read({"q": "x", "a": answer})
    assert made.messages[-1].content == text
    assert made.notes == (ANSWER_WRITTEN_AS_JSON,)


def test_messages_and_conversations_under_other_names() -> None:
    turns = [{"role": "user", "content": "q"}]
    assert read({"messages": "dialog", "system": "s"}, dialog=turns, s="be") == "sbe uq"
    assert (
        read({"conversations": "chat", "system": "s"}, chat=[{"from": "human", "value": "q"}], s="be")
        == "sbe uq"
    )


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"q": "x"}, "column-missing"),
        ({"q": "x", "a": None}, "answer-null"),
        ({"q": 5, "a": "x"}, "not-a-text"),
    ],
)
def test_bad_rows(row: dict[str, Any], code: str) -> None:
    with pytest.raises(RowFault) as caught:
        ColumnsShape({"input": "q", "answer": "a"}).read(row)
    assert caught.value.code == code
