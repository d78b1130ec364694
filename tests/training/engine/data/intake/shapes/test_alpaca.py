from typing import Any

import pytest

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.alpaca import AlpacaShape


def read(**row: Any) -> list[tuple[str, str]]:
    return [(message.role[0], message.content) for message in AlpacaShape().read(row).messages]


@pytest.mark.parametrize(
    ("row", "question"),
    [
        ({"instruction": "翻译", "input": "你好", "output": "o"}, "翻译\n你好"),
        ({"instruction": "i", "input": "", "output": "o"}, "i"),
        ({"instruction": "i", "input": None, "output": "o"}, "i"),
        ({"instruction": "i", "output": "o"}, "i"),
        ({"instruction": "", "input": "x", "output": "o"}, "x"),
        ({"instruction": " ", "input": "", "output": "o"}, ""),
    ],
)
def test_instruction_and_input(row: dict[str, Any], question: str) -> None:
    assert read(**row) == [("u", question), ("a", "o")]


@pytest.mark.parametrize("history", [[["q", "r"]], '[["q", "r"]]'])
def test_history_and_system(history: Any) -> None:
    assert read(instruction="i", output="o", history=history, system="s") == [
        ("s", "s"),
        ("u", "q"),
        ("a", "r"),
        ("u", "i"),
        ("a", "o"),
    ]


@pytest.mark.parametrize("history", [None, [], "", " "])
def test_no_history(history: Any) -> None:
    assert read(instruction="i", output="o", history=history) == [("u", "i"), ("a", "o")]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"instruction": "i", "output": None}, "not-a-text"),
        ({"instruction": "i", "output": 5}, "not-a-text"),
        ({"instruction": "i", "output": "o", "input": ["x"]}, "not-a-text"),
        ({"output": "o"}, "column-missing"),
        ({"instruction": "i", "output": "o", "history": [["q"]]}, "history-invalid"),
        ({"instruction": "i", "output": "o", "history": {"q": "r"}}, "history-invalid"),
        ({"instruction": "i", "output": "o", "history": "q: r"}, "history-invalid"),
    ],
)
def test_bad_rows(row: dict[str, Any], code: str) -> None:
    with pytest.raises(RowFault) as caught:
        read(**row)
    assert caught.value.code == code
