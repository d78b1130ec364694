"""Generators whose outputs are written down: the boundary to models."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from training.engine.data.making.generator import Generated, Prompt


class ScriptedGenerator:
    """Answers by a function of the prompt and remembers what it was asked."""

    def __init__(self, answer: Callable[[Prompt], str | Generated], name: str = "scripted") -> None:
        self._answer = answer
        self._name = name
        self.calls: list[tuple[Prompt, ...]] = []

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"model": self._name}

    def generate(self, prompts: Sequence[Prompt], *, max_tokens: int) -> list[Generated]:
        self.calls.append(tuple(prompts))
        outputs = [self._answer(prompt) for prompt in prompts]
        return [item if isinstance(item, Generated) else Generated(item) for item in outputs]


def by_instruction(answers: Mapping[str, str | Generated]) -> Callable[[Prompt], str | Generated]:
    """Answer by the system message alone."""
    return lambda prompt: answers[prompt[0].content]
