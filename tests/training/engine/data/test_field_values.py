import pytest

from training.engine.data.examples import ChatMessage, Example
from training.engine.data.field_values import parse_selector
from training.engine.errors import ConfigInvalid

EXAMPLE = Example(
    example_id="a",
    messages=(
        ChatMessage("user", "x"),
        ChatMessage("assistant", '{"urgency": "high", "customer": {"vip": true, "level": 2}, "list": []}'),
    ),
    fields={
        "category": "mail", "group": 7, "empty": "", "tags": {"channel": "chat"}, "origin": {"file": "b.csv"},
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("selector", "value"),
    [
        ("category", "mail"),
        ("group", "7"),
        ("empty", None),
        ("missing", None),
        ("tags/channel", "chat"),
        ("tags/missing", None),
        ("origin/file", "b.csv"),
        ("answer/urgency", "high"),
        ("answer/customer/vip", "true"),
        ("answer/customer/level", "2"),
        ("answer/customer", None),
        ("answer/list", None),
        ("answer/missing", None),
    ],
)
def test_values(selector: str, value: str | None) -> None:
    assert parse_selector(selector).read(EXAMPLE) == value


def test_answers_that_are_no_json() -> None:
    assert parse_selector("answer/urgency").read(EXAMPLE.with_answer("high")) is None


@pytest.mark.parametrize("text", ["", "tags", "answer/", "/x", "messages/0", "origin"])
def test_unknown_fields(text: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse_selector(text)
    assert caught.value.code == "selector-invalid"
