import pytest

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.messages import MessagesShape

TURNS = [{"role": "user", "content": "你好"}, {"role": "assistant", "content": "您好"}]


def test_messages_are_read() -> None:
    made = MessagesShape().read({"messages": TURNS, "system": "not read here"})
    assert [(message.role, message.content) for message in made.messages] == [
        ("user", "你好"),
        ("assistant", "您好"),
    ]
    assert MessagesShape("dialog").read({"dialog": TURNS}).messages == made.messages


def test_doubts() -> None:
    assert MessagesShape().doubt({"messages": []}) == ""
    assert MessagesShape().doubt({"messages": "x"}) == "messages is a text, not a list"
    assert MessagesShape().doubt({}) == "no column messages"
    with pytest.raises(RowFault) as caught:
        MessagesShape().read({})
    assert caught.value.code == "column-missing"
