# ruff: noqa: RUF001 (full-width characters are what is tested)
from pathlib import Path
from typing import Any

from tests.training.engine.data.cleaning.test_duplicates import example
from training.engine.data.cleaning.duplicates import KINDS
from training.engine.data.cleaning.run import read_parameters
from training.engine.data.cleaning.step import Outcome, Step, StepContext
from training.engine.data.examples import ChatMessage, Example

LIMIT = KINDS[1]
URGENT, CALM = '{"urgency": "high"}', '{"urgency": "low"}'
NOTE = "The customer cannot sign in since the update and asks for a call back in the afternoon."


def start(**parameters: Any) -> Step:
    context = StepContext(seed=1, scratch=Path())
    return LIMIT.build(read_parameters(LIMIT, parameters, "clean"), context)


def run(examples: list[Example], **parameters: Any) -> tuple[list[Outcome], Any]:
    step = start(**parameters)
    for item in examples:
        step.observe(item)
    outcomes = [step.apply(item) for item in examples]
    return outcomes, step.facts()


def answers(*texts: str, question: str = "What now?") -> list[Example]:
    return [example(f"e{i}", question, text) for i, text in enumerate(texts)]


def reasons(outcomes: list[Outcome]) -> list[str]:
    return [" ".join(outcome.reasons) for outcome in outcomes]


def test_first_three_different_outputs_are_kept() -> None:
    outcomes, facts = run(answers("wait", "WAIT!", "call us", "write to us", "pay", "call us."))
    assert reasons(outcomes) == ["", "same-output-again", "", "", "too-many-outputs", "same-output-again"]
    assert [outcome.example is None for outcome in outcomes] == [False, True, False, False, True, True]
    assert facts["num_repeated_inputs"] == 1


def test_inputs_are_compared_normalised_and_with_their_context() -> None:
    examples = [
        example("a", "好的，谢谢", "不客气"),
        example("b", "好的,谢谢", "不客气。"),
        example("c", "好的，谢谢", "不客气", system="客服"),
        Example(
            example_id="d",
            messages=(
                ChatMessage("user", "hello"),
                ChatMessage("assistant", "hi"),
                ChatMessage("user", "好的，谢谢"),
                ChatMessage("assistant", "不客气"),
            ),
        ),
    ]
    outcomes, _ = run(examples)
    assert reasons(outcomes) == ["", "same-output-again", "", ""]


def test_json_outputs_differ_by_value() -> None:
    outcomes, _ = run(answers('{"a": 1, "b": 2}', '{"b": 2, "a": 1.0}', '{"a": 1, "b": 3}'))
    assert reasons(outcomes) == ["conflicting-outputs", "same-output-again", "conflicting-outputs"]


def test_conflicts_are_flagged() -> None:
    examples = [*answers(URGENT, CALM), example("other", "Fine.", CALM), example("again", "Fine.", CALM)]
    outcomes, facts = run(examples)
    assert reasons(outcomes) == ["conflicting-outputs", "conflicting-outputs", "", "same-output-again"]
    assert [outcome.detail for outcome in outcomes[:2]] == ["the first of them", "others: e0"]
    assert outcomes[0].example == examples[0]
    assert facts["num_conflicting_inputs"] == 1
    assert facts["num_conflicting_examples"] == 2
    assert facts["conflicts"] == [{"num_examples": 2, "example_ids": ["e0", "e1"]}]


def test_all_conflicting_examples_are_dropped() -> None:
    outcomes, facts = run(answers(URGENT, CALM, URGENT), conflicts="drop_all")
    assert reasons(outcomes) == ["conflicting-outputs"] * 3
    assert all(outcome.example is None for outcome in outcomes)
    assert facts["num_conflicting_examples"] == 3


def test_first_of_conflicting_examples_is_kept() -> None:
    outcomes, _ = run(answers(URGENT, CALM, URGENT), conflicts="keep_first")
    assert [outcome.example is None for outcome in outcomes] == [False, True, True]
    assert reasons(outcomes) == ["conflicting-outputs", "conflicting-outputs", "same-output-again"]


def test_other_free_text_in_json_is_no_conflict() -> None:
    long = [f'{{"urgency": "high", "note": "{note}"}}' for note in (NOTE, NOTE.replace("call", "mail"))]
    outcomes, facts = run(answers(*long))
    assert reasons(outcomes) == ["", ""]
    assert facts["num_conflicting_inputs"] == 0


def test_bounds_of_facts() -> None:
    examples = [example(f"{i}-{j}", f"question {i}", f'{{"a": {j}}}') for i in range(30) for j in range(10)]
    _, facts = run(examples)
    assert facts["num_conflicting_inputs"] == 30
    assert facts["num_conflicting_examples"] == 300
    assert len(facts["conflicts"]) == 20
    assert facts["conflicts"][0] == {"num_examples": 10, "example_ids": [f"0-{j}" for j in range(5)]}


def test_examples_without_an_answer_go_on() -> None:
    outcomes, _ = run([example("a", "x", None), example("b", "x", None)])
    assert reasons(outcomes) == ["", ""]


def test_no_examples() -> None:
    assert start().facts()["num_repeated_inputs"] == 0
