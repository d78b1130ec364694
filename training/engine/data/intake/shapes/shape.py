"""What a shape is: it claims rows by their columns, and reads them as conversations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from training.engine.data.examples import ChatMessage
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.strict_json import describe_type

LEADING_ANSWER_LEFT_OUT = "leading-answer-left-out"
CONTENT_PARTS_JOINED = "content-parts-joined"
MESSAGE_KEYS_LEFT_OUT = "message-keys-left-out"
ANSWER_WRITTEN_AS_JSON = "answer-written-as-json"
NOTES: Mapping[str, str] = {
    LEADING_ANSWER_LEFT_OUT: "Conversations began with an answer that nothing asked for; it was left out.",
    CONTENT_PARTS_JOINED: "Contents were lists of text parts; these were joined by line feeds.",
    MESSAGE_KEYS_LEFT_OUT: "Messages held keys besides role and content; these were left out.",
    ANSWER_WRITTEN_AS_JSON: "Answers were no texts; they were written as compact JSON.",
}
"""What may have been changed while reading a row, with a sentence for people; counted per file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a shape makes of a row.

    Attributes:
        messages: At least one, in an order that chat templates accept.
        notes: Codes out of ``NOTES``.
    """

    messages: tuple[ChatMessage, ...]
    notes: tuple[str, ...] = ()


class Shape(Protocol):
    """One way in which columns hold a conversation."""

    @property
    def name(self) -> str:
        """Its name in settings."""

    @property
    def meanings(self) -> Mapping[str, str]:
        """Column to what it means, for the columns that the conversation is made of."""

    def doubt(self, row: Mapping[str, Any]) -> str:
        """Return why a row is not of this shape, judged by its columns and their types; "" when it is."""

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """Make the conversation.

        Raises:
            RowFault: The row is of the shape, but something in it is wrong.
        """


def read_text(row: Mapping[str, Any], column: str) -> str:
    """Return the text of a column that must hold one.

    Raises:
        RowFault: ``column-missing`` or ``not-a-text``.
    """
    if column not in row:
        raise RowFault("column-missing", f"has no {column}")
    value = row[column]
    if not isinstance(value, str):
        raise RowFault("not-a-text", f"{column} is {describe_type(value)}, not a text")
    return value


def read_optional_text(row: Mapping[str, Any], column: str) -> str:
    """Return the text of a column, "" when the column is absent or null.

    Raises:
        RowFault: ``not-a-text``.
    """
    return "" if row.get(column) is None else read_text(row, column)


def make_conversation(
    messages: Sequence[ChatMessage], *, system: str = "", notes: Sequence[str] = ()
) -> Conversation:
    """Check the order of the turns and make the conversation.

    The order is the one that the registry asks of datasets: only the first message may be the system's, a
    user speaks at least once, and a last answer follows a user.

    Args:
        messages: The turns.
        system: Put before them when it is not blank.
        notes: See ``Conversation``.

    Raises:
        RowFault: ``messages-empty``, ``system-twice``, ``system-not-first``, ``user-missing`` or
            ``answer-without-question``.
    """
    if system.strip():
        if messages and messages[0].role == "system" and messages[0].content != system:
            raise RowFault("system-twice", "has a system column and another system message")
        if not messages or messages[0].role != "system":
            messages = (ChatMessage("system", system), *messages)
    roles = [message.role for message in messages]
    if not roles:
        raise RowFault("messages-empty", "has no messages")
    if "system" in roles[1:]:
        raise RowFault(
            "system-not-first",
            f"message {roles.index('system', 1) + 1} is the system's; only the first may be",
        )
    if "user" not in roles:
        raise RowFault("user-missing", "no message is the user's")
    if roles[-1] == "assistant" and roles[-2] != "user":
        raise RowFault(
            "answer-without-question", f"the last answer follows a message of {roles[-2]}, not of the user"
        )
    return Conversation(messages=tuple(messages), notes=tuple(dict.fromkeys(notes)))
