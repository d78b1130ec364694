"""Shape ``alpaca``: ``instruction``, ``input``, ``output``; ``history`` and ``system`` where they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.engine.data.examples import ChatMessage
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.shapes.shape import (
    Conversation,
    make_conversation,
    read_optional_text,
    read_text,
)
from training.engine.data.intake.strict_json import describe_type, parse_value


@dataclass(frozen=True, slots=True)
class AlpacaShape:
    """Reads the columns of Stanford Alpaca and its followers.

    The user says the instruction and, on the next line, the input when it is not blank (MISSION C1). The
    instruction is not made a system message: it differs from row to row.
    """

    @property
    def name(self) -> str:
        """Its name in settings."""
        return "alpaca"

    @property
    def meanings(self) -> Mapping[str, str]:
        """Column to meaning."""
        return {
            "instruction": "input, first part",
            "input": "input, second part",
            "output": "answer",
            "history": "earlier turns",
            "system": "system",
        }

    def doubt(self, row: Mapping[str, Any]) -> str:
        """Return why a row is not of this shape; "" when it is."""
        missing = [column for column in ("instruction", "output") if column not in row]
        if missing:
            return f"no column {' and '.join(missing)}"
        value = row["instruction"]
        return "" if isinstance(value, str) else f"instruction is {describe_type(value)}, not a text"

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """Make the conversation.

        Raises:
            RowFault: ``column-missing``, ``not-a-text``, ``history-invalid``, or as ``make_conversation``.
        """
        instruction, added = read_text(row, "instruction"), read_optional_text(row, "input")
        question = "\n".join(text for text in (instruction, added) if text.strip())
        messages = [
            *read_history(row.get("history")),
            ChatMessage("user", question),
            ChatMessage("assistant", read_text(row, "output")),
        ]
        return make_conversation(messages, system=read_optional_text(row, "system"))


def read_history(raw: Any) -> list[ChatMessage]:
    """Return earlier turns out of pairs of question and answer; a text is read as JSON, as CSV holds it.

    Raises:
        RowFault: ``history-invalid``.
    """
    if isinstance(raw, str) and raw.strip():
        try:
            raw = parse_value(raw, max_depth=3)
        except RowFault as fault:
            raise RowFault("history-invalid", f"history is {fault.message}") from fault
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return []
    is_pairs = isinstance(raw, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        for pair in raw
    )
    if not is_pairs:
        raise RowFault("history-invalid", "history is no list of pairs of question and answer")
    return [
        ChatMessage(role, text)
        for pair in raw
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
