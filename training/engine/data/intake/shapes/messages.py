"""Shape ``messages``: a list of {"role", "content"}, as chat APIs and this product's own files have it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.shape import Conversation, make_conversation
from training.engine.data.intake.shapes.turns import CHAT_ROLES, read_turns
from training.engine.data.intake.strict_json import describe_type


@dataclass(frozen=True, slots=True)
class MessagesShape:
    """Reads one column of messages.

    Attributes:
        column: Its name.
    """

    column: str = "messages"

    @property
    def name(self) -> str:
        """Its name in settings."""
        return "messages"

    @property
    def meanings(self) -> Mapping[str, str]:
        """Column to meaning."""
        return {self.column: "messages"}

    def doubt(self, row: Mapping[str, Any]) -> str:
        """Return why a row is not of this shape; "" when it is."""
        if self.column not in row:
            return f"no column {self.column}"
        value = row[self.column]
        return "" if isinstance(value, list) else f"{self.column} is {describe_type(value)}, not a list"

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """Make the conversation.

        Raises:
            RowFault: See ``turns.read_turns`` and ``shape.make_conversation``.
        """
        if self.column not in row:
            raise RowFault("column-missing", f"has no {self.column}")
        notes: list[str] = []
        messages = read_turns(
            row[self.column], role_key="role", content_key="content", roles=CHAT_ROLES, notes=notes
        )
        return make_conversation(messages, notes=notes)
