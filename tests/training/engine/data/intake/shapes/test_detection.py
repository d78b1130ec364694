from typing import Any

import pytest

from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.shapes.detection import ShapeChoice, choose_shape, suggest_columns

TURNS = [{"role": "user", "content": "q"}]
MESSAGES = {"messages": TURNS}
ALPACA = {"instruction": "i", "input": "", "output": "o"}
PAIR = {"question": "q", "answer": "a"}


def choose(*rows: dict[str, Any], **raw: Any) -> ShapeChoice:
    return choose_shape(rows, IntakeSettings.from_json(raw))


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (MESSAGES, "messages"),
        (ALPACA, "alpaca"),
        ({"conversations": []}, "sharegpt"),
        ({"prompt": "q", "completion": "a"}, "prompt_completion"),
        ({"prompt": TURNS, "response": "a"}, "prompt_completion"),
        ({"input": "q", "output": "a"}, "prompt_completion"),
        (PAIR, "prompt_completion"),
    ],
)
def test_sure_shapes(row: dict[str, Any], name: str) -> None:
    choice = choose(row, row)
    assert choice.shape is not None
    assert (choice.shape.name, choice.confidence) == (name, "sure")
    assert choice.reason.startswith("2 of the first 2 rows have")


def test_a_few_other_rows_do_not_matter() -> None:
    assert choose(*[MESSAGES] * 8, {}, {"messages": None}).confidence == "sure"
    choice = choose(*[MESSAGES] * 7, {}, {}, {"messages": None})
    assert (choice.confidence, choice.shape) == ("unsure", None)
    assert "only 7 of the first 10" in choice.reason


def test_two_shapes_are_not_guessed() -> None:
    choice = choose({**MESSAGES, **PAIR})
    assert choice.shape is None
    assert "messages (messages: 1 rows) and prompt_completion (question, answer: 1 rows)" in choice.reason
    assert choose(*[MESSAGES] * 7, *[ALPACA] * 3).shape is None
    stated = choose({**MESSAGES, **PAIR}, shape="messages")
    assert stated.shape is not None
    assert (stated.shape.name, stated.confidence) == ("messages", "stated")


def test_two_pairs_are_not_guessed_even_when_stated() -> None:
    row = {"prompt": "q", "completion": "a", "response": "b"}
    assert choose(row).shape is None
    assert choose(row, shape="prompt_completion").shape is None


def test_unknown_shapes_say_what_was_seen() -> None:
    choice = choose({"id": 1, "text": "t", "label": "l"})
    assert choice.shape is None
    assert choice.reason == "no row of the first 1 has a known shape; columns seen: id, text, label"
    assert choice.suggestion == {"input": "text", "answer": "label"}
    assert {candidate.name for candidate in choice.candidates} == {
        "messages",
        "sharegpt",
        "alpaca",
        "prompt_completion",
    }
    assert all(candidate.doubt for candidate in choice.candidates)


def test_stated_shapes_that_do_not_fit() -> None:
    choice = choose(PAIR, shape="alpaca")
    assert choice.shape is None
    assert "no column instruction and output" in choice.reason
    choice = choose(PAIR, columns={"input": "question", "answer": "reply"})
    assert "no column reply" in choice.reason


def test_no_rows() -> None:
    assert choose().confidence == "none"
    assert choose(shape="alpaca").confidence == "stated"


@pytest.mark.parametrize(
    ("columns", "suggestion"),
    [
        (["text", "label"], {"input": "text", "answer": "label"}),
        (["用户输入", "输出", "渠道"], {"input": "用户输入", "answer": "输出"}),
        (["Query", "Intent"], {"input": "Query", "answer": "Intent"}),
        (["instruction", "context", "response"], {"input": "instruction", "answer": "response"}),
        (["text"], {"input": "text"}),
        (["a", "b"], {}),
        (["label"], {}),
    ],
)
def test_suggestions(columns: list[str], suggestion: dict[str, str]) -> None:
    assert suggest_columns([dict.fromkeys(columns, "x")]) == suggestion
