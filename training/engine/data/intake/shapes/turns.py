"""Lists of turns as foreign files hold them: roles under many names, contents as texts or parts."""

from collections.abc import Mapping
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.examples import ChatMessage
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.shape import CONTENT_PARTS_JOINED, MESSAGE_KEYS_LEFT_OUT
from training.engine.data.intake.strict_json import describe_type

CHAT_ROLES: Mapping[str, str] = {"system": "system", "user": "user", "assistant": "assistant"}
SPEAKERS: Mapping[str, str] = {
    **CHAT_ROLES,
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "bot": "assistant",
}
"""Names that ShareGPT files give to speakers."""
TOOL_ROLES = frozenset(
    {
        "tool",
        "tools",
        "function",
        "function_call",
        "function_response",
        "observation",
        "ipython",
        "tool_call",
        "tool_response",
    }
)
_TOOL_KEYS = ("tool_calls", "function_call")


def read_turns(
    items: Any, *, role_key: str, content_key: str, roles: Mapping[str, str], notes: list[str]
) -> list[ChatMessage]:
    """Read a list of turns.

    Args:
        items: What the file holds.
        role_key: Key of the speaker.
        content_key: Key of the text.
        roles: Name of a speaker to role.
        notes: Takes codes of ``shape.NOTES``.

    Raises:
        RowFault: ``messages-not-a-list``, ``message-not-an-object``, ``tool-role``, ``tool-calls``,
            ``role-unknown``, ``content-null`` or another fault of a content, with the turn's number.
    """
    if not isinstance(items, list):
        raise RowFault("messages-not-a-list", f"the messages are {describe_type(items)}, not a list")
    messages = []
    for number, item in enumerate(items, start=1):
        if not isinstance(item, Mapping):
            raise RowFault(
                "message-not-an-object", f"message {number} is {describe_type(item)}, not an object"
            )
        role = _read_role(item, number, role_key, roles)
        content = _read_content(item, number, content_key, notes)
        if any(value is not None for key, value in item.items() if key not in (role_key, content_key)):
            notes.append(MESSAGE_KEYS_LEFT_OUT)
        messages.append(ChatMessage(role, content))
    return messages


def _read_role(item: Mapping[str, Any], number: int, role_key: str, roles: Mapping[str, str]) -> str:
    raw = item.get(role_key)
    if isinstance(raw, str) and raw in TOOL_ROLES:
        raise RowFault("tool-role", f"message {number} is of role {raw}; calls of tools are not read")
    for key in _TOOL_KEYS:
        if item.get(key):
            raise RowFault("tool-calls", f"message {number} holds {key}; calls of tools are not read")
    role = roles.get(raw) if isinstance(raw, str) else None
    if role is None:
        named = "no role" if raw is None else f"the role {shown(raw)!r}"
        message = f"message {number} has {named}; known are {', '.join(roles)}"
        raise RowFault("role-unknown", message)
    return role


def _read_content(item: Mapping[str, Any], number: int, content_key: str, notes: list[str]) -> str:
    content = item.get(content_key)
    if isinstance(content, str):
        return content
    if content is None:
        what = "null" if content_key in item else "missing"
        raise RowFault("content-null", f"the {content_key} of message {number} is {what}")
    if not isinstance(content, list):
        message = f"the {content_key} of message {number} is {describe_type(content)}, not a text"
        raise RowFault("content-not-a-text", message)
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get("text") if isinstance(part, Mapping) else None
        if kind != "text" or not isinstance(text, str):
            named = f"of type {shown(kind)!r}" if kind else describe_type(part)
            message = f"message {number} has a part that is {named}; only text is read"
            raise RowFault("content-part-not-text", message)
        texts.append(text)
    if not texts:
        raise RowFault("content-null", f"the {content_key} of message {number} has no parts")
    notes.append(CONTENT_PARTS_JOINED)
    return "\n".join(texts)
