"""Shape ``prompt_completion``: one column asks, one answers, each a text or, as trl has it, messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.engine.data.examples import ChatMessage
from training.engine.data.intake.shapes.shape import (
    Conversation,
    make_conversation,
    read_optional_text,
    read_text,
)
from training.engine.data.intake.shapes.turns import CHAT_ROLES, read_turns
from training.engine.data.intake.strict_json import describe_type

KNOWN_PAIRS = (("prompt", "completion"), ("prompt", "response"), ("question", "answer"), ("input", "output"))
"""Names of columns that ask and answer, of which no other meaning is usual."""


@dataclass(frozen=True, slots=True)
class PairShape:
    """Reads one pair of columns, and ``system`` where it is.

    Attributes:
        question: Column that asks.
        reply: Column that answers.
    """

    question: str
    reply: str

    @property
    def name(self) -> str:
        """Its name in settings."""
        return "prompt_completion"

    @property
    def meanings(self) -> Mapping[str, str]:
        """Column to meaning."""
        return {self.question: "input", self.reply: "answer", "system": "system"}

    def doubt(self, row: Mapping[str, Any]) -> str:
        """Return why a row is not of this shape; "" when it is."""
        missing = [column for column in (self.question, self.reply) if column not in row]
        if missing:
            return f"no column {' and '.join(missing)}"
        if self.question == "input" and "instruction" in row:
            return "has an instruction besides, as alpaca has"
        value = row[self.question]
        if isinstance(value, str | list):
            return ""
        return f"{self.question} is {describe_type(value)}, not a text and no list of messages"

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """Make the conversation.

        Raises:
            RowFault: ``column-missing``, ``not-a-text``, or as ``read_turns`` and ``make_conversation``.
        """
        notes: list[str] = []
        messages = [
            *_read_side(row, self.question, "user", notes),
            *_read_side(row, self.reply, "assistant", notes),
        ]
        return make_conversation(messages, system=read_optional_text(row, "system"), notes=notes)


def _read_side(row: Mapping[str, Any], column: str, role: str, notes: list[str]) -> list[ChatMessage]:
    value = row.get(column)
    if isinstance(value, list):
        return read_turns(value, role_key="role", content_key="content", roles=CHAT_ROLES, notes=notes)
    return [ChatMessage(role, read_text(row, column))]
