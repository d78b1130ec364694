import copy
from dataclasses import replace
from typing import Any

import pytest

from tests.fixtures.models import smollm2_tokenizer
from tests.training.engine.preflight.views import (
    FAILED,
    PASSED,
    WARNING,
    foreign,
    make_example,
    make_examples,
    view_of,
)
from training.engine.chat import IGNORED_LABEL
from training.engine.data.examples import Example
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.checks import templates
from training.engine.preflight.token_rows import TokenRow

TURNS = "{{% for m in messages %}}{{{{ '{0}' + m['role'] + '{1}' + m['content'] + '{2}' }}}}{{% endfor %}}"
LLAMA3 = TURNS.format("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
ZEPHYR = TURNS.format("<|user|>", "\n", "<|endoftext|>\n")
CHATML = TURNS.format("<|im_start|>", "\n", "<|im_end|>\n")


class WithoutTurns:
    """SmolLM2's tokenizer without special tokens of turns."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.all_special_ids = [0]  # <|endoftext|>

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


def with_template(template: str, *, without_turns: bool = False) -> Any:
    tokenizer = copy.deepcopy(smollm2_tokenizer())
    tokenizer.chat_template = template
    return WithoutTurns(tokenizer) if without_turns else tokenizer


@pytest.mark.parametrize("template", [LLAMA3, TURNS.format("[INST] ", " ", " [/INST]")])
def test_the_template_of_another_model_is_found(template: str) -> None:
    view = replace(view_of(), tokenizer=with_template(template))
    result = templates.check_template(view)
    assert (result.status, result.row) == (FAILED, HandbookRow.WRONG_DATA)
    assert "<|im_start|>" in result.message


def test_the_own_template_is_right() -> None:
    assert templates.check_template(view_of()).status is PASSED
    assert templates.check_template(foreign()).status is PASSED
    assert templates.check_template(replace(view_of(), tokenizer=with_template(CHATML))).status is PASSED


def test_marks_that_are_plain_text_in_their_own_family_pass_there() -> None:
    tokenizer = with_template(ZEPHYR, without_turns=True)
    assert templates.check_template(replace(view_of(), tokenizer=tokenizer)).status is PASSED
    tokenizer = with_template(LLAMA3, without_turns=True)
    assert templates.check_template(replace(view_of(), tokenizer=tokenizer)).status is FAILED


def test_rows_rendered_elsewhere_with_another_template_are_found() -> None:
    ids = smollm2_tokenizer().encode("<|start_header_id|>user<|end_header_id|>", add_special_tokens=False)

    def other(row: TokenRow) -> TokenRow:
        return TokenRow(row.example_id, (*ids, *row.input_ids), (*[IGNORED_LABEL] * len(ids), *row.labels))

    result = templates.check_template(foreign(other))
    # Beside the right marks: a person must look.
    assert (result.status, result.row) == (WARNING, HandbookRow.WRONG_DATA)


def with_mark(example: Example, mark: str) -> Example:
    return make_example(example.example_id, example.input_text, f"{example.answer}{mark}")


@pytest.mark.parametrize("mark", ["<|eot_id|>", "[INST]", "<|im_start|>user"])
def test_marks_inside_of_messages_are_found(mark: str) -> None:
    examples = [with_mark(example, mark) for example in make_examples()]
    result = templates.check_marks_in_texts(replace(view_of(), examples=examples))
    assert (result.status, result.row) == (FAILED, HandbookRow.TEMPLATE_TOKENS_IN_OUTPUT)
    assert result.example_ids == ("e0", "e1", "e2", "e3", "e4")


def test_messages_without_marks_pass() -> None:
    headings = [make_example("a", "### Input:\na form", "fine")]
    for view in (view_of(), view_of(headings), foreign()):
        assert templates.check_marks_in_texts(view).status is PASSED
