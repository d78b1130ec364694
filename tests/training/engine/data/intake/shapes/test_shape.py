import pytest

from training.engine.data.examples import ChatMessage
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.shape import make_conversation, read_optional_text, read_text

SYSTEM, USER, ANSWER = ChatMessage("system", "s"), ChatMessage("user", "u"), ChatMessage("assistant", "a")


@pytest.mark.parametrize(
    ("messages", "system", "roles"),
    [
        ([USER], "", "u"),
        ([USER, ANSWER], "be kind", "sua"),
        ([USER, ANSWER], "  ", "ua"),
        ([SYSTEM, USER, ANSWER], "s", "sua"),
        ([ANSWER, USER, ANSWER], "", "aua"),
        ([USER, USER, ANSWER], "", "uua"),
    ],
)
def test_orders_that_pass(messages: list[ChatMessage], system: str, roles: str) -> None:
    made = make_conversation(messages, system=system).messages
    assert "".join(message.role[0] for message in made) == roles


@pytest.mark.parametrize(
    ("messages", "system", "code"),
    [
        ([], "", "messages-empty"),
        ([SYSTEM], "", "user-missing"),
        ([SYSTEM, ANSWER], "", "user-missing"),
        ([USER, SYSTEM, ANSWER], "", "system-not-first"),
        ([SYSTEM, USER], "other", "system-twice"),
        ([USER, ANSWER, ANSWER], "", "answer-without-question"),
    ],
)
def test_orders_that_do_not(messages: list[ChatMessage], system: str, code: str) -> None:
    with pytest.raises(RowFault) as caught:
        make_conversation(messages, system=system)
    assert caught.value.code == code


def test_texts_of_columns() -> None:
    assert read_text({"a": ""}, "a") == ""
    assert read_optional_text({"a": None}, "a") == read_optional_text({}, "a") == ""
    with pytest.raises(RowFault, match="has no a"):
        read_text({}, "a")
    with pytest.raises(RowFault, match="a is a number, not a text"):
        read_optional_text({"a": 1}, "a")
