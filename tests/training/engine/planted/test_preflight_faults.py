"""Faults that the preflight must recognise before a step is made, each with its check and its row."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.training.engine.planted.material import make_lines, pretrained_llama
from tests.training.engine.planted.test_before_training import to_examples
from training.engine.chat import IGNORED_LABEL, render_rows
from training.engine.config import TrainingConfig
from training.engine.data.examples import ChatMessage, Example
from training.engine.device import Precision
from training.engine.handbook.rows import HandbookRow
from training.engine.lora_model import add_lora, load_base_model, load_tokenizer
from training.engine.preflight.data_stage import look_at_data, make_view
from training.engine.preflight.first_step import examine_first_step
from training.engine.preflight.report import CheckResult, CheckStatus
from training.engine.preflight.token_rows import TokenRow, from_chat_rows
from training.engine.step_plan import StepPlan
from training.engine.trained_model import AdapterModel

SYSTEM = "You sort tickets into kinds and answer in JSON."
CONFIG = TrainingConfig.from_json(
    {
        "lora": {"r": 4, "lora_dropout": 0.0},
        "training": {"per_device_batch_size": 4, "gradient_accumulation_steps": 1, "dtype": "float32"},
    }
)
CPU = Precision(torch.device("cpu"), torch.float32)
Rows = Sequence[TokenRow]


def make_examples(num: int = 12) -> list[Example]:
    return to_examples(make_lines(num))


def render(examples: Sequence[Example]) -> tuple[TokenRow, ...]:
    rendered = render_rows(
        load_tokenizer(pretrained_llama()), examples, system_prompt=None, max_length_tokens=500
    )
    return from_chat_rows(rendered.rows)


def look(
    rows: Rows, examples: Sequence[Example] = (), *, config: TrainingConfig = CONFIG, **more: Any
) -> dict[str, CheckResult]:
    view = make_view(
        load_tokenizer(pretrained_llama()),
        rows,
        config,
        base_model=pretrained_llama(),
        examples=examples,
        **more,
    )
    return {check.code: check for check in look_at_data(view, ()).checks}


def bad(checks: dict[str, CheckResult]) -> dict[str, CheckResult]:
    return {
        code: check
        for code, check in checks.items()
        if check.status in (CheckStatus.FAILED, CheckStatus.WARNING)
    }


def change(edit: Callable[[TokenRow], TokenRow]) -> dict[str, CheckResult]:
    return look([edit(row) for row in render(make_examples())])


def test_sound_rows_raise_nothing() -> None:
    examples = make_examples()
    assert bad(look(render(examples), examples)) == {}
    assert bad(look(render(examples))) == {}


def ignore_all(row: TokenRow) -> TokenRow:
    return replace(row, labels=(IGNORED_LABEL,) * len(row.labels))


def train_all(row: TokenRow) -> TokenRow:
    return replace(row, labels=row.input_ids)


def shift_labels(row: TokenRow) -> TokenRow:
    """Labels moved by one against their tokens: the loss moves them once more."""
    return replace(row, labels=(*row.labels[1:], IGNORED_LABEL))


def drop_end(row: TokenRow) -> TokenRow:
    return TokenRow(row.example_id, row.input_ids[:-1], row.labels[:-1])


def mask_end(row: TokenRow) -> TokenRow:
    """Padding and end token are one token, and padding is masked by its id."""
    return replace(row, labels=(*row.labels[:-1], IGNORED_LABEL))


def cut_answer(row: TokenRow) -> TokenRow:
    keep = row.num_prompt_tokens + max(1, (len(row.input_ids) - row.num_prompt_tokens) // 2)
    return TokenRow(row.example_id, row.input_ids[:keep], row.labels[:keep])


def punch_hole(row: TokenRow) -> TokenRow:
    middle = row.num_prompt_tokens + 1
    labels = [*row.labels]
    labels[middle] = IGNORED_LABEL
    return replace(row, labels=tuple(labels))


@pytest.mark.parametrize(
    ("edit", "code", "row"),
    [
        (ignore_all, "trained-tokens", HandbookRow.WRONG_DATA),
        (train_all, "prompt-not-trained", HandbookRow.WRONG_DATA),
        (shift_labels, "labels-in-place", HandbookRow.WRONG_DATA),
        (drop_end, "end-token-trained", HandbookRow.NEVER_STOPS),
        (mask_end, "padding-keeps-end-token", HandbookRow.NEVER_STOPS),
        (cut_answer, "end-token-trained", HandbookRow.NEVER_STOPS),
        (punch_hole, "mask-without-holes", HandbookRow.WRONG_DATA),
    ],
)
def test_a_wrong_mask_is_named(edit: Callable[[TokenRow], TokenRow], code: str, row: HandbookRow) -> None:
    found = change(edit)[code]
    assert (found.status, found.row) == (CheckStatus.FAILED, row)


def with_messages(example: Example, *messages: ChatMessage) -> Example:
    return replace(example, messages=messages)


def test_a_system_prompt_rendered_twice() -> None:
    examples = [
        with_messages(
            example, ChatMessage("system", SYSTEM), ChatMessage("system", SYSTEM), *example.messages
        )
        for example in make_examples()
    ]
    found = bad(look(render(examples), examples))["single-system-prompt"]
    assert (found.status, found.row) == (CheckStatus.FAILED, HandbookRow.WRONG_DATA)


def test_an_answer_cut_in_two_turns() -> None:
    examples = [
        with_messages(
            example,
            example.messages[0],
            ChatMessage("assistant", example.messages[1].content[:3]),
            ChatMessage("assistant", example.messages[1].content[3:] or "."),
        )
        for example in make_examples()
    ]
    found = bad(look(render(examples), examples))["answers-in-one-turn"]
    assert (found.status, found.row) == (CheckStatus.FAILED, HandbookRow.WRONG_DATA)


def test_rows_rendered_with_the_template_of_another_model() -> None:
    tokenizer: Any = load_tokenizer(pretrained_llama())
    rows = []
    for example in make_examples():
        prompt = f"<|start_header_id|>user<|end_header_id|>\n\n{example.messages[0].content}<|eot_id|>"
        prompt_ids = tuple(tokenizer.encode(prompt, add_special_tokens=False))
        answer = tuple(tokenizer.encode(example.messages[1].content, add_special_tokens=False))
        end = (tokenizer.eos_token_id,)
        labels = (IGNORED_LABEL,) * len(prompt_ids) + answer + end
        rows.append(TokenRow(example.example_id, prompt_ids + answer + end, labels))
    found = look(rows)["template-of-this-model"]
    assert (found.status, found.row) == (CheckStatus.FAILED, HandbookRow.WRONG_DATA)


def test_duplicates_only_and_one_answer_only() -> None:
    examples = [replace(make_examples(1)[0], example_id=str(number)) for number in range(20)]
    found = bad(look(render(examples), examples))
    assert found["few-copies"].row is HandbookRow.REPETITION
    assert found["answers-differ"].row is HandbookRow.LOSS_NEAR_ZERO
    assert {check.status for check in found.values()} == {CheckStatus.FAILED}


def test_held_out_examples_that_are_trained_on() -> None:
    examples = make_examples()
    held_out = [replace(example, example_id=f"h{example.example_id}") for example in examples[:4]]
    found = bad(look(render(examples), examples, held_out=held_out, held_out_rows=render(held_out)))[
        "no-leak"
    ]
    assert (found.status, found.row) == (CheckStatus.FAILED, HandbookRow.LOSS_NEAR_ZERO)


def first_step(
    *, config: TrainingConfig = CONFIG, spoil: Callable[[AdapterModel], None] = lambda model: None
) -> dict[str, CheckResult]:
    base = load_base_model(
        pretrained_llama(), dtype=torch.float32, attention="eager", device=torch.device("cpu")
    )
    model = AdapterModel(add_lora(base, config.lora, base_model_name="tiny"))
    tokenizer = load_tokenizer(pretrained_llama())
    rows = render_rows(tokenizer, make_examples(), system_prompt=None, max_length_tokens=500).rows
    (_, batches) = next(StepPlan(rows, config.training, pad_token_id=0).iterate(after_step=0))
    loss = model.prepare(batches[0], CPU, gradient_checkpointing=config.training.gradient_checkpointing)
    spoil(model)
    findings = examine_first_step(model, loss, batches, config, CPU, pad_token_id=0)
    return {check.code: check for check in findings.checks}


def test_a_sound_first_step_raises_nothing() -> None:
    assert bad(first_step()) == {}


def freeze_half(model: AdapterModel) -> None:
    for name, parameter in model.module.named_parameters():
        if "lora_" in name and ".layers.0." in name:
            parameter.requires_grad_(False)


def switch_checkpointing_off(model: AdapterModel) -> None:
    model.module.gradient_checkpointing_disable()


def make_half(model: AdapterModel) -> None:
    for parameter in model.trainables.values():
        parameter.data = parameter.data.to(torch.bfloat16)


def cut_from_graph(model: AdapterModel) -> None:
    """One block works on values that no gradient flows into."""
    layer = model.module.get_base_model().model.layers[0]
    layer.self_attn.register_forward_hook(lambda module, inputs, output: (output[0].detach(), *output[1:]))


@pytest.mark.parametrize(
    ("spoil", "code", "row"),
    [
        (freeze_half, "adapter-not-frozen", HandbookRow.NOT_TRAINABLE),
        (switch_checkpointing_off, "checkpointing-active", None),
        (make_half, "trained-in-float32", HandbookRow.NOT_TRAINABLE),
        (cut_from_graph, "gradients-arrive", HandbookRow.NOT_TRAINABLE),
    ],
)
def test_a_step_that_would_not_train_is_named(
    spoil: Callable[[AdapterModel], None], code: str, row: HandbookRow | None
) -> None:
    found = first_step(spoil=spoil)[code]
    assert found.status is CheckStatus.FAILED
    assert found.row is not None
    if row is not None:
        assert found.row is row
