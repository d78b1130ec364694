from typing import Any

import pytest

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.pairs import PairShape

SHAPE = PairShape("prompt", "completion")


def read(**row: Any) -> list[tuple[str, str]]:
    return [(message.role[0], message.content) for message in SHAPE.read(row).messages]


@pytest.mark.parametrize("prompt", ["问", [{"role": "user", "content": "问"}]])
@pytest.mark.parametrize("completion", ["答", [{"role": "assistant", "content": "答"}]])
def test_texts_and_lists_of_messages(prompt: Any, completion: Any) -> None:
    assert read(prompt=prompt, completion=completion) == [("u", "问"), ("a", "答")]


def test_several_turns_and_system() -> None:
    prompt = [
        {"role": "user", "content": "1"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "3"},
    ]
    made = read(prompt=prompt, completion="4", system="s")
    assert "".join(role + text for role, text in made) == "ssu1a2u3a4"


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"prompt": "q", "completion": None}, "not-a-text"),
        ({"prompt": "q", "completion": 1}, "not-a-text"),
        ({"prompt": "q"}, "column-missing"),
        ({"prompt": "q", "completion": [{"role": "tool", "content": "x"}]}, "tool-role"),
        ({"prompt": [], "completion": "a"}, "user-missing"),
    ],
)
def test_bad_rows(row: dict[str, Any], code: str) -> None:
    with pytest.raises(RowFault) as caught:
        read(**row)
    assert caught.value.code == code


def test_input_and_output_beside_an_instruction_are_alpaca() -> None:
    shape = PairShape("input", "output")
    assert shape.doubt({"input": "a", "output": "b"}) == ""
    assert shape.doubt({"instruction": "i", "input": "a", "output": "b"}) != ""
    assert SHAPE.doubt({"prompt": 3, "completion": "a"}) != ""
