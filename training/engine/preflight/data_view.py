"""What the checks of the data look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from training.engine.chat import ChatTokenizer, DroppedExample, with_system_prompt
from training.engine.config import TrainingConfig
from training.engine.data.examples import ChatMessage, Example
from training.engine.preflight.token_rows import TokenRow

MAX_RENDERED: Final = 200
"""Rows that are rendered a second time, or decoded whole, spread over all: each takes about a millisecond."""


@dataclass(frozen=True, kw_only=True)
class DataView:
    """A training's data on the way into the model.

    Attributes:
        tokenizer: Of the base.
        config: Of the training.
        rows: All rows that are trained on.
        examples: What the rows were rendered from, in the order of the files; empty for rows that were
            tokenised elsewhere.
        dropped: Examples that were left out when they were rendered.
        held_out: Examples of the held-out loss; may be empty.
        held_out_rows: Their rows.
        stop_ids: Tokens at which serving stops on its own: the tokenizer's and those of the base's generation
            settings.
        end_token_id: The token that the chat template puts after an answer; None when it has none.
        vocabulary_size: Rows of the base's embedding; None when unknown.
    """

    tokenizer: ChatTokenizer
    config: TrainingConfig
    rows: Sequence[TokenRow]
    examples: Sequence[Example] = ()
    dropped: Sequence[DroppedExample] = ()
    held_out: Sequence[Example] = ()
    held_out_rows: Sequence[TokenRow] = ()
    stop_ids: frozenset[int] = field(default_factory=frozenset)
    end_token_id: int | None = None
    vocabulary_size: int | None = None

    @property
    def end_ids(self) -> frozenset[int]:
        """Every token that can end an answer."""
        return self.stop_ids if self.end_token_id is None else self.stop_ids | {self.end_token_id}

    @cached_property
    def messages(self) -> Mapping[str, tuple[ChatMessage, ...]]:
        """The messages of each example as they are rendered, by the example's id.

        Ids that several files share are left out: a row could not tell which of them it is.
        """
        system_prompt = self.config.data.system_prompt
        seen: dict[str, tuple[ChatMessage, ...]] = {}
        shared: set[str] = set()
        for example in self.examples:
            if example.example_id in seen:
                shared.add(example.example_id)
            seen[example.example_id] = with_system_prompt(example, system_prompt)
        return {name: messages for name, messages in seen.items() if name not in shared}

    @cached_property
    def sample(self) -> tuple[TokenRow, ...]:
        """At most `MAX_RENDERED` rows, spread evenly over all."""
        stride = max(1, -(-len(self.rows) // MAX_RENDERED))
        return tuple(self.rows[::stride])
