"""Runs a cleaning step over examples in memory."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.engine.data.cleaning.run import read_parameters
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind, TokenCounter
from training.engine.data.examples import ChatMessage, Example


@dataclass(frozen=True)
class Cleaned:
    outcomes: tuple[Outcome, ...]
    facts: Mapping[str, Any]

    @property
    def reasons(self) -> list[tuple[str, ...]]:
        return [outcome.reasons for outcome in self.outcomes]

    @property
    def answers(self) -> list[str | None]:
        return [outcome.example.answer if outcome.example else None for outcome in self.outcomes]

    @property
    def num_dropped(self) -> int:
        return sum(outcome.example is None for outcome in self.outcomes)


def make_example(
    user: str,
    answer: str | None = "ok",
    *,
    system: str | None = None,
    is_general: bool = False,
    **fields: Any,
) -> Example:
    messages = [ChatMessage("system", system)] if system is not None else []
    messages.append(ChatMessage("user", user))
    if answer is not None:
        messages.append(ChatMessage("assistant", answer))
    return Example(example_id="e1", messages=tuple(messages), is_general=is_general, fields=fields)


def clean(
    kind: StepKind,
    examples: Iterable[Example],
    *,
    count_tokens: TokenCounter | None = None,
    **parameters: Any,
) -> Cleaned:
    context = StepContext(seed=0, scratch=Path("unused"), count_tokens=count_tokens)
    step = kind.build(read_parameters(kind, parameters, kind.name), context)
    listed = list(examples)
    if kind.needs_first_pass:
        for example in listed:
            step.observe(example)
    outcomes = tuple(step.apply(example) for example in listed)
    return Cleaned(outcomes, step.facts())


def clean_one(kind: StepKind, example: Example, **parameters: Any) -> Outcome:
    return clean(kind, [example], **parameters).outcomes[0]
