import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from training.engine.data.checks.check import CheckKind, DataFinding
from training.engine.data.examples import ChatMessage, Example
from training.engine.data.jsonl import read_examples

TICKETS = Path(__file__).parents[5] / "examples" / "tickets"

Run = Callable[..., tuple[DataFinding, ...]]
Make = Callable[..., list[Example]]


@pytest.fixture
def run() -> Run:
    """Runs a check over examples, with its defaults and the parameters given."""

    def run(kind: CheckKind, examples: Iterable[Example], **parameters: object) -> tuple[DataFinding, ...]:
        check = kind.build({**kind.defaults, **parameters})
        for example in examples:
            check.add(example)
        return check.findings()

    return run


@pytest.fixture
def make() -> Make:
    """Makes examples out of (input, answer) pairs; an answer that is no text becomes JSON."""

    def make(*pairs: tuple[str, object], is_general: bool = False, **fields: object) -> list[Example]:
        return [
            Example(
                example_id=f"e{number}",
                messages=(
                    ChatMessage("user", user),
                    ChatMessage(
                        "assistant",
                        answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False),
                    ),
                ),
                is_general=is_general,
                fields=fields,
            )
            for number, (user, answer) in enumerate(pairs)
        ]

    return make


@pytest.fixture(scope="session")
def demo() -> Callable[[str], tuple[Example, ...]]:
    """Reads one of the committed files of the demo task."""
    return lambda name: read_examples(TICKETS / f"{name}.jsonl")
