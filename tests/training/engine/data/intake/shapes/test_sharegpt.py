from typing import Any

import pytest

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.shape import LEADING_ANSWER_LEFT_OUT
from training.engine.data.intake.shapes.sharegpt import ShareGptShape


def turns(*speakers: str) -> list[dict[str, str]]:
    return [{"from": speaker, "value": f"{number}"} for number, speaker in enumerate(speakers)]


def read(row: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    made = ShareGptShape().read(row)
    return " ".join(message.role[0] + message.content for message in made.messages), made.notes


@pytest.mark.parametrize(
    ("row", "expected", "notes"),
    [
        ({"conversations": turns("human", "gpt")}, "u0 a1", ()),
        ({"conversations": turns("user", "assistant", "human", "chatgpt")}, "u0 a1 u2 a3", ()),
        ({"conversations": turns("system", "human", "gpt")}, "s0 u1 a2", ()),
        ({"conversations": turns("human", "gpt"), "system": "be"}, "sbe u0 a1", ()),
        ({"conversations": turns("human", "gpt"), "system": None}, "u0 a1", ()),
        ({"conversations": turns("gpt", "human", "gpt")}, "u1 a2", (LEADING_ANSWER_LEFT_OUT,)),
        ({"conversations": turns("system", "gpt", "gpt", "human")}, "s0 u3", (LEADING_ANSWER_LEFT_OUT,)),
        ({"conversations": [{"role": "user", "content": "c"}]}, "uc", ()),
    ],
)
def test_conversations(row: dict[str, Any], expected: str, notes: tuple[str, ...]) -> None:
    assert read(row) == (expected, notes)


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"conversations": turns("gpt")}, "messages-empty"),
        ({"conversations": []}, "messages-empty"),
        ({"conversations": turns("human", "observation", "gpt")}, "tool-role"),
        ({"conversations": turns("human", "narrator")}, "role-unknown"),
        ({"conversations": turns("system", "human"), "system": "other"}, "system-twice"),
        ({"conversations": [{"from": "human", "value": None}]}, "content-null"),
        ({"conversations": "x"}, "messages-not-a-list"),
        ({}, "column-missing"),
    ],
)
def test_bad_conversations(row: dict[str, Any], code: str) -> None:
    with pytest.raises(RowFault) as caught:
        read(row)
    assert caught.value.code == code
