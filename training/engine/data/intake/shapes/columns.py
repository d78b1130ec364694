"""Shape ``columns``: the settings say which column is what."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.engine.data.examples import ChatMessage
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.settings import CONVERSATION_MEANINGS
from training.engine.data.intake.shapes.alpaca import read_history
from training.engine.data.intake.shapes.messages import MessagesShape
from training.engine.data.intake.shapes.shape import (
    ANSWER_WRITTEN_AS_JSON,
    Conversation,
    make_conversation,
    read_optional_text,
    read_text,
)
from training.engine.data.intake.shapes.sharegpt import ShareGptShape


@dataclass(frozen=True, slots=True)
class ColumnsShape:
    """Reads the columns that the settings name.

    Attributes:
        columns: Meaning to column: input with answer, system and history, or messages, or conversations.
            Without answer the conversation ends with the user.
    """

    columns: Mapping[str, str]

    @property
    def name(self) -> str:
        """Its name in settings."""
        return "columns"

    @property
    def meanings(self) -> Mapping[str, str]:
        """Column to meaning."""
        return {
            column: meaning for meaning, column in self.columns.items() if meaning in CONVERSATION_MEANINGS
        }

    def doubt(self, row: Mapping[str, Any]) -> str:
        """Return why a row is not of this shape; "" when it is."""
        needed = [
            self.columns[name]
            for name in ("input", "answer", "messages", "conversations")
            if name in self.columns
        ]
        missing = [column for column in needed if column not in row]
        return f"no column {' and '.join(missing)}" if missing else ""

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """Make the conversation; an answer that is no text becomes compact JSON.

        Raises:
            RowFault: ``column-missing``, ``not-a-text``, ``answer-null``, or as the other shapes.
        """
        system = self.columns.get("system", "")
        if "conversations" in self.columns:
            return ShareGptShape(self.columns["conversations"], system).read(row)
        text = read_optional_text(row, system) if system else ""
        if "messages" in self.columns:
            conversation = MessagesShape(self.columns["messages"]).read(row)
            return make_conversation(conversation.messages, system=text, notes=conversation.notes)
        notes: list[str] = []
        messages = read_history(row.get(self.columns["history"])) if "history" in self.columns else []
        messages.append(ChatMessage("user", read_text(row, self.columns["input"])))
        if "answer" in self.columns:
            messages.append(ChatMessage("assistant", _read_answer(row, self.columns["answer"], notes)))
        return make_conversation(messages, system=text, notes=notes)


def _read_answer(row: Mapping[str, Any], column: str, notes: list[str]) -> str:
    if column not in row:
        raise RowFault("column-missing", f"has no {column}")
    value = row[column]
    if isinstance(value, str):
        return value
    if value is None:
        raise RowFault("answer-null", f"{column} is null")
    notes.append(ANSWER_WRITTEN_AS_JSON)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
