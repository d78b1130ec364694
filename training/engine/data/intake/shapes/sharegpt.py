"""Shape ``sharegpt``: ``conversations`` of {"from", "value"}, with a ``system`` column where there is one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.shape import (
    LEADING_ANSWER_LEFT_OUT,
    Conversation,
    make_conversation,
    read_optional_text,
)
from training.engine.data.intake.shapes.turns import SPEAKERS, read_turns
from training.engine.data.intake.strict_json import describe_type


@dataclass(frozen=True, slots=True)
class ShareGptShape:
    """Reads one column of turns.

    Answers before the first question are left out and noted: nothing asked for them, and most chat templates
    refuse a conversation that begins with one.

    Attributes:
        column: Its name.
        system_column: Column with the system message; need not be there.
    """

    column: str = "conversations"
    system_column: str = "system"

    @property
    def name(self) -> str:
        """Its name in settings."""
        return "sharegpt"

    @property
    def meanings(self) -> Mapping[str, str]:
        """Column to meaning."""
        return {self.column: "conversations", self.system_column: "system"}

    def doubt(self, row: Mapping[str, Any]) -> str:
        """Return why a row is not of this shape; "" when it is."""
        if self.column not in row:
            return f"no column {self.column}"
        value = row[self.column]
        return "" if isinstance(value, list) else f"{self.column} is {describe_type(value)}, not a list"

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """Make the conversation; turns with ``role`` and ``content`` are read as well.

        Raises:
            RowFault: See ``turns.read_turns`` and ``shape.make_conversation``.
        """
        if self.column not in row:
            raise RowFault("column-missing", f"has no {self.column}")
        items = row[self.column]
        first = items[0] if isinstance(items, list) and items else None
        is_chat = isinstance(first, Mapping) and "from" not in first and "role" in first
        role_key, content_key = ("role", "content") if is_chat else ("from", "value")
        notes: list[str] = []
        messages = read_turns(items, role_key=role_key, content_key=content_key, roles=SPEAKERS, notes=notes)
        start = 1 if messages and messages[0].role == "system" else 0
        end = start
        while end < len(messages) and messages[end].role == "assistant":
            end += 1
        if end > start:
            notes.append(LEADING_ANSWER_LEFT_OUT)
            del messages[start:end]
        return make_conversation(messages, system=read_optional_text(row, self.system_column), notes=notes)
