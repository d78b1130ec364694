"""The example: one line of a dataset as a value. No torch here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

ROLES = ("system", "user", "assistant")
# Made once: json.dumps makes one for every call that is not the default one.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn; ``role`` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A conversation and what is known of it.

    Attributes:
        example_id: Unique in its dataset.
        messages: At least one.
        is_general: Whether it is general instruction data, which gets no system prompt of the task: its file
            lies in ``general/``, or its line says ``"role": "general"`` (``data.mixing`` writes that).
        fields: All other keys of the line, in their order: ``tags``, ``category``, ``reference_source``,
            ``confirmed_by``, ``origin``, ``group``, ``dimension``, ``scoring`` and what else a team writes.
    """

    example_id: str
    messages: tuple[ChatMessage, ...]
    is_general: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def input_text(self) -> str:
        """What the user says, all turns, without system message and answers."""
        return "\n".join(message.content for message in self.messages if message.role == "user")

    @property
    def answer(self) -> str | None:
        """The reference, or None when the last message is not the assistant's."""
        last = self.messages[-1]
        return last.content if last.role == "assistant" else None

    @property
    def tags(self) -> Mapping[str, str]:
        """Labels that make slices; empty when there are none."""
        tags = self.fields.get("tags")
        return tags if isinstance(tags, Mapping) else {}

    @property
    def origin(self) -> Mapping[str, Any]:
        """Where the example came from: kind, file, row and more (MISSION C5); empty when unknown."""
        origin = self.fields.get("origin")
        return origin if isinstance(origin, Mapping) else {}

    def with_contents(self, contents: Mapping[int, str]) -> "Example":
        """Return the example with other texts in some of its messages, by the message's index."""
        others = {
            index: content for index, content in contents.items() if content != self.messages[index].content
        }
        if not others:
            return self
        messages = tuple(
            ChatMessage(message.role, others[index]) if index in others else message
            for index, message in enumerate(self.messages)
        )
        return replace(self, messages=messages)

    def with_answer(self, answer: str) -> "Example":
        """Return the example with another reference.

        Raises:
            ValueError: The last message is not the assistant's.
        """
        if self.answer is None:
            raise ValueError(f"example {self.example_id!r} has no answer")
        return self.with_contents({len(self.messages) - 1: answer})

    def with_fields(self, **fields: Any) -> "Example":
        """Return the example with more or other keys."""
        return replace(self, fields={**self.fields, **fields})

    def to_json(self) -> dict[str, Any]:
        """Return the line: id and messages first, then the other keys in their order."""
        messages = [{"role": message.role, "content": message.content} for message in self.messages]
        return {"id": self.example_id, "messages": messages, **self.fields}

    def to_line(self) -> str:
        """Return the line as canonical text without its line feed; equal examples give equal bytes."""
        return _ENCODER.encode(self.to_json())
