"""On clean data the default parameters do nothing but cut the longest hundredth."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.engine.data.cleaning.steps import clean
from training.engine.data.cleaning import (
    canonical_json,
    empty,
    language,
    lengths,
    normalise,
    repair_text,
    stock_answers,
)
from training.engine.data.cleaning.step import StepKind
from training.engine.data.examples import ChatMessage, Example

TICKETS = Path(__file__).parents[5] / "examples" / "tickets"
STEPS = (repair_text, normalise, canonical_json, empty, language, stock_answers)


def read(name: str) -> Iterator[Example]:
    for line in (TICKETS / f"{name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        messages = tuple(ChatMessage(item["role"], item["content"]) for item in row.pop("messages"))
        yield Example(example_id=row.pop("id"), messages=messages, fields=row)


@pytest.mark.parametrize("name", ["train", "holdout", "ood"])
@pytest.mark.parametrize(
    "kind", [kind for module in STEPS for kind in module.KINDS], ids=lambda kind: kind.name
)
def test_nothing_is_done_to_clean_tickets(kind: StepKind, name: str) -> None:
    examples = list(read(name))
    cleaned = clean(kind, examples)
    assert [outcome.example for outcome in cleaned.outcomes] == examples
    assert set(cleaned.reasons) == {()}
    json.dumps(cleaned.facts, allow_nan=False)


@pytest.mark.parametrize("name", ["train", "holdout", "ood"])
def test_only_the_longest_hundredth_is_cut(name: str) -> None:
    cleaned = clean(lengths.KIND, read(name))
    assert cleaned.num_dropped <= len(cleaned.outcomes) / 100
    assert {reason for reasons in cleaned.reasons for reason in reasons} <= {"too-long"}


@pytest.mark.parametrize("kind", [kind for module in (*STEPS, lengths) for kind in module.KINDS])
def test_every_parameter_has_a_default_that_its_rule_takes(kind: StepKind) -> None:
    assert set(kind.rules) == set(kind.defaults)
    for name, rule in kind.rules.items():
        # What a report shows as a list comes back as one.
        rule.read(json.loads(json.dumps(kind.defaults[name])))
