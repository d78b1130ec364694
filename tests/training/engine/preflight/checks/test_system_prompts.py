import copy
from typing import Any

import pytest

from tests.fixtures.models import smollm2_tokenizer
from tests.training.engine.preflight.views import (
    FAILED,
    PASSED,
    SYSTEM,
    WARNING,
    foreign,
    make_example,
    make_examples,
    view_of,
)
from training.engine.data.examples import ChatMessage, Example
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.checks.system_prompts import check_system_prompt

TEMPLATE_THAT_DOUBLES = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] }}"
    "{% if m['role'] == 'system' %}{{ '\n' + m['content'] }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def change(example: Example, *messages: ChatMessage) -> Example:
    return Example(example_id=example.example_id, messages=(*messages, *example.messages[1:]))


def said_twice(example: Example) -> Example:
    return change(example, ChatMessage("system", f"{SYSTEM}\n\n{SYSTEM}"))


def two_messages(example: Example) -> Example:
    return change(example, ChatMessage("system", SYSTEM), ChatMessage("system", "Be brief."))


def repeated_by_user(example: Example) -> Example:
    question = f"{SYSTEM}\n{example.input_text}"
    return make_example(example.example_id, question, example.answer or "")


@pytest.mark.parametrize("spoil", [said_twice, two_messages, repeated_by_user])
def test_a_doubled_system_prompt_is_found(spoil: Any) -> None:
    result = check_system_prompt(view_of([spoil(example) for example in make_examples()]))
    assert (result.status, result.row) == (FAILED, HandbookRow.WRONG_DATA)
    assert result.example_ids[0] == "e0"


def test_the_configured_prompt_inside_of_the_data_is_found() -> None:
    examples = [
        make_example(item.example_id, f"{SYSTEM} {item.input_text}", item.answer or "", system=None)
        for item in make_examples()
    ]
    config = {"data": {"system_prompt": SYSTEM}}
    assert check_system_prompt(view_of(examples, config=config)).status is FAILED
    assert check_system_prompt(view_of(examples)).status is PASSED


def test_a_template_that_writes_it_twice_is_found() -> None:
    tokenizer = copy.deepcopy(smollm2_tokenizer())
    tokenizer.chat_template = TEMPLATE_THAT_DOUBLES
    result = check_system_prompt(view_of(tokenizer=tokenizer))
    assert result.status is FAILED
    assert "the template" in result.message


def test_one_system_prompt_is_right() -> None:
    assert check_system_prompt(view_of()).status is PASSED
    # The data's own message is kept, and the configured one is not added.
    assert check_system_prompt(view_of(config={"data": {"system_prompt": SYSTEM}})).status is PASSED
    assert check_system_prompt(foreign()).status is PASSED


def test_a_doubled_prompt_in_rows_from_elsewhere_is_a_warning() -> None:
    examples = [said_twice(example) for example in make_examples()]
    view = view_of(examples)
    from_elsewhere = type(view)(
        tokenizer=view.tokenizer, config=view.config, rows=view.rows, stop_ids=view.stop_ids
    )
    assert check_system_prompt(from_elsewhere).status is WARNING
