"""Faults that are seen before a step is made: by the rendering, the lint, the checks of the data."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from tests.training.engine.lint.plans import make_plan
from tests.training.engine.planted.material import make_line, make_lines, pretrained_llama
from training.engine.chat import render_rows
from training.engine.data.checks.catalogue import CHECKS
from training.engine.data.examples import ChatMessage, Example
from training.engine.data.leakage.report import find_leakage
from training.engine.errors import ChatTemplateUnsuitable
from training.engine.handbook.lookup import get_rows
from training.engine.handbook.rows import HandbookRow
from training.engine.lint.judge import judge_plan
from training.engine.lora_model import load_tokenizer

CHATML = (
    "{% for m in messages %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
Codes = set[str]


def to_examples(lines: Iterable[Any]) -> list[Example]:
    return [
        Example(
            example_id=line["id"],
            messages=tuple(ChatMessage(item["role"], item["content"]) for item in line["messages"]),
        )
        for line in lines
    ]


def render_with(template: str, lines: Sequence[Any] | None = None) -> Codes:
    tokenizer: Any = load_tokenizer(pretrained_llama())
    tokenizer.chat_template = template
    try:
        render_rows(tokenizer, to_examples(lines or make_lines(4)), system_prompt=None, max_length_tokens=500)
    except ChatTemplateUnsuitable as error:
        return {f"chat/{error.code}"}
    return set()


def check(name: str, lines: Iterable[Any]) -> Codes:
    kind = CHECKS[name]
    running = kind.build(kind.defaults)
    for example in to_examples(lines):
        running.add(example)
    return {f"data/{finding.code}" for finding in running.findings()}


def lint(**plan: Any) -> Codes:
    return {f"lint/{finding.code}" for finding in judge_plan(make_plan(**plan)).findings}


def change_answers(change: Callable[[str], str]) -> list[Any]:
    return [
        make_line(line["id"], line["messages"][0]["content"], change(line["messages"][1]["content"]))
        for line in make_lines(120)
    ]


def shift_answers() -> list[Any]:
    lines = make_lines(120)
    answers = [line["messages"][1]["content"] for line in lines]
    return [
        make_line(line["id"], line["messages"][0]["content"], answer)
        for line, answer in zip(lines, [answers[-1], *answers[:-1]], strict=True)
    ]


def leak(lines: Sequence[Any]) -> Codes:
    report = find_leakage(to_examples(make_lines(60)), {"holdout": to_examples(lines)})
    return {f"leakage/{pair.kind}" for pair in report.pairs}


def nearly(line: Any) -> Any:
    question = line["messages"][0]["content"]
    return make_line("h0", f"{question} please", line["messages"][1]["content"])


def long_line() -> Any:
    return make_line(
        "e0", "Ticket 4711: the printer in the second room on the left side is broken again today", "{}"
    )


CASES: dict[str, tuple[Callable[[], Codes], str, HandbookRow]] = {
    "no-end-token": (
        lambda: render_with("{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
                            "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"),
        "chat/end-token-missing", HandbookRow.NEVER_STOPS,
    ),
    "other-generation-prompt": (
        lambda: render_with(CHATML.replace("'<|im_start|>assistant\n'", "'<|im_start|>assistant\n<think>'")),
        "chat/prompt-not-a-prefix", HandbookRow.WRONG_DATA,
    ),
    "template-changes-answers": (
        lambda: render_with(CHATML.replace("m['content'] +", "m['content'] | upper +")),
        "chat/answer-not-recoverable", HandbookRow.WRONG_DATA,
    ),
    "two-begin-tokens": (
        lambda: render_with("{{ '<|im_start|><|im_start|>' }}" + CHATML),
        "chat/double-bos", HandbookRow.WRONG_DATA,
    ),
    "template-refuses-the-roles": (
        lambda: render_with("{{ raise_exception('only system and tool') }}"),
        "chat/template-refused", HandbookRow.WRONG_DATA,
    ),
    "answers-shifted-by-one": (
        lambda: check("misalignment", shift_answers()), "data/answers-shifted", HandbookRow.OFF_TOPIC,
    ),
    "answers-cut": (
        lambda: check("truncated_outputs", change_answers(lambda answer: answer[:-9])),
        "data/json-cut-off", HandbookRow.NEVER_STOPS,
    ),
    "markers-of-another-template": (
        lambda: check("template_tokens", change_answers(lambda answer: answer + "<|eot_id|>")),
        "data/template-token", HandbookRow.TEMPLATE_TOKENS_IN_OUTPUT,
    ),
    "one-value-for-nearly-all": (
        lambda: check("label_balance", change_answers(lambda answer: answer.replace('"high"', '"low"'))),
        "data/constant-field", HandbookRow.FIELD_ALWAYS_WRONG,
    ),
    "holdout-row-in-training": (lambda: leak(make_lines(3)), "leakage/exact", HandbookRow.LOSS_NEAR_ZERO),
    "full-tuning-rate": (
        lambda: lint(learning_rate=1e-5), "lint/learning-rate-of-full-fine-tuning", HandbookRow.LOSS_FLAT,
    ),
    "rate-far-too-high": (
        lambda: lint(learning_rate=1.0), "lint/learning-rate-far-too-high", HandbookRow.LOSS_OSCILLATES,
    ),
    "too-many-passes": (lambda: lint(num_epochs=8.0), "lint/too-many-epochs", HandbookRow.LOSS_NEAR_ZERO),
    "does-not-fit": (
        lambda: lint(card_gb=12.0), "lint/memory-does-not-fit", HandbookRow.OUT_OF_MEMORY_AT_START,
    ),
    "float16-base": (lambda: lint(base_dtype="float16"), "lint/float16-base", HandbookRow.LOSS_NOT_FINITE),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_check_names_the_row(name: str) -> None:
    plant, code, row = CASES[name]
    assert code in plant()
    assert row in get_rows(code)


def test_a_near_duplicate_in_the_holdout_is_a_leak() -> None:
    training = to_examples([long_line()])
    report = find_leakage(training, {"holdout": to_examples([nearly(long_line())])})
    assert {pair.kind for pair in report.pairs} == {"near"}
    assert HandbookRow.LOSS_NEAR_ZERO in get_rows("leakage/near")


def test_good_data_and_a_good_plan_name_no_row() -> None:
    good = make_lines(120)
    found = {code for name in CHECKS for code in check(name, good)} | lint() | render_with(CHATML)
    assert {row for code in found for row in get_rows(code)} == set()
