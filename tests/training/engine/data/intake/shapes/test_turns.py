from typing import Any

import pytest

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.shape import CONTENT_PARTS_JOINED, MESSAGE_KEYS_LEFT_OUT
from training.engine.data.intake.shapes.turns import CHAT_ROLES, read_turns


def read(items: Any) -> tuple[list[str], list[str]]:
    notes: list[str] = []
    messages = read_turns(items, role_key="role", content_key="content", roles=CHAT_ROLES, notes=notes)
    return [message.content for message in messages], notes


def test_parts_of_text_are_joined_and_noted() -> None:
    parts = [{"type": "text", "text": "看"}, {"type": "text", "text": "图"}]
    assert read([{"role": "user", "content": parts}]) == (["看\n图"], [CONTENT_PARTS_JOINED])


def test_other_keys_are_noted_unless_null() -> None:
    assert read([{"role": "user", "content": "a", "name": None, "tool_calls": None}]) == (["a"], [])
    assert read([{"role": "user", "content": "a", "weight": 0}]) == (["a"], [MESSAGE_KEYS_LEFT_OUT])


@pytest.mark.parametrize(
    ("items", "code"),
    [
        (None, "messages-not-a-list"),
        ("[]", "messages-not-a-list"),
        (["hello"], "message-not-an-object"),
        ([{"content": "a"}], "role-unknown"),
        ([{"role": "User", "content": "a"}], "role-unknown"),
        ([{"role": ["user"], "content": "a"}], "role-unknown"),
        ([{"role": "tool", "content": "a"}], "tool-role"),
        ([{"role": "function", "content": "a"}], "tool-role"),
        ([{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}], "tool-calls"),
        ([{"role": "assistant", "content": None}], "content-null"),
        ([{"role": "assistant"}], "content-null"),
        ([{"role": "user", "content": []}], "content-null"),
        ([{"role": "user", "content": 7}], "content-not-a-text"),
        ([{"role": "user", "content": {"type": "text", "text": "a"}}], "content-not-a-text"),
        ([{"role": "user", "content": ["a"]}], "content-part-not-text"),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}], "content-part-not-text"),
    ],
)
def test_bad_turns(items: Any, code: str) -> None:
    with pytest.raises(RowFault) as caught:
        read(items)
    assert caught.value.code == code


def test_hostile_roles_are_shown_escaped() -> None:
    with pytest.raises(RowFault) as caught:
        read([{"role": "\x1b[2J" + "x" * 500, "content": "a"}])
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 250
