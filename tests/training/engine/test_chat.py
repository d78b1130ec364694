# ruff: noqa: RUF001 (full-width characters are what is tested)
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.fixtures.models import smollm2_tokenizer
from training.engine.chat import (
    IGNORED_LABEL,
    find_end_token_id,
    render_prompt_ids,
    render_row,
    render_rows,
)
from training.engine.data.examples import ChatMessage, Example
from training.engine.errors import ChatTemplateUnsuitable

IM_END = 2  # SmolLM2's <|im_end|>
ANSWERS = [
    '{"a":1}',
    "  two spaces",
    "ends with space ",
    "你好，世界",
    "line\nbreak\n",
    "",
    "emoji 🎉",
    "12345",
]


def make_messages(answer: str) -> list[ChatMessage]:
    return [ChatMessage("system", "Be brief."), ChatMessage("user", "Hi?"), ChatMessage("assistant", answer)]


@pytest.mark.parametrize("answer", ANSWERS)
def test_trained_tokens_decode_to_answer_and_end_token(answer: str) -> None:
    tokenizer = smollm2_tokenizer()
    row = render_row(tokenizer, "x", make_messages(answer), end_token_id=IM_END)
    trained = [label for label in row.labels if label != IGNORED_LABEL]
    assert tokenizer.decode(trained) == answer + "<|im_end|>"
    assert trained[-1] == IM_END
    assert len(row.labels) == len(row.input_ids)
    assert row.num_trained_tokens == len(trained)


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_answer_is_recovered(answer: str) -> None:
    tokenizer = smollm2_tokenizer()
    # The vocabulary lacks some bytes; what it cannot say at all is another test.
    assume("<|" not in answer and tokenizer.decode(tokenizer.encode(answer)) == answer)
    row = render_row(tokenizer, "x", make_messages(answer), end_token_id=IM_END)
    assert tokenizer.decode(row.input_ids[row.num_prompt_tokens :]) == answer + "<|im_end|>"


def test_prompt_ids_are_those_of_apply_chat_template() -> None:
    tokenizer = smollm2_tokenizer()
    messages = make_messages("yes")
    conversation = [{"role": item.role, "content": item.content} for item in messages[:-1]]
    expected = tokenizer.apply_chat_template(conversation, add_generation_prompt=True, return_dict=False)
    row = render_row(tokenizer, "x", messages, end_token_id=IM_END)
    assert list(row.input_ids[: row.num_prompt_tokens]) == expected
    assert render_prompt_ids(tokenizer, messages[:-1]) == expected


def test_end_token_is_found_in_the_template() -> None:
    assert find_end_token_id(smollm2_tokenizer()) == IM_END


def test_long_and_unteachable_rows_are_dropped_and_named() -> None:
    def example(name: str, answer: str) -> Example:
        return Example(example_id=name, messages=tuple(make_messages(answer)))

    rendered = render_rows(
        smollm2_tokenizer(),
        [example("ok", "yes"), example("long", "word " * 50), example("stops", "a<|im_end|>b")],
        system_prompt=None,
        max_length_tokens=40,
    )
    assert [row.example_id for row in rendered.rows] == ["ok"]
    assert [(item.example_id, item.reason.split()[0]) for item in rendered.dropped] == [
        ("long", "71"),
        ("stops", "its"),
    ]


def test_characters_outside_the_vocabulary_drop_one_row() -> None:
    # SmolLM2's byte-level vocabulary has no token for the byte F1, which begins planes 4 to 15 in UTF-8.
    examples = [
        Example(example_id=name, messages=tuple(make_messages(answer)))
        for name, answer in (("good", "yes"), ("odd", "\U00040000"))
    ]
    rendered = render_rows(smollm2_tokenizer(), examples, system_prompt=None, max_length_tokens=100)
    assert [row.example_id for row in rendered.rows] == ["good"]
    assert [item.example_id for item in rendered.dropped] == ["odd"]


def test_system_prompt_is_added_only_where_it_belongs() -> None:
    tokenizer = smollm2_tokenizer()
    turns = (ChatMessage("user", "Hi?"), ChatMessage("assistant", "yes"))
    examples = [
        Example(example_id="task", messages=turns),
        Example(example_id="own", messages=(ChatMessage("system", "Mine."), *turns)),
        Example(example_id="general", messages=turns, is_general=True),
    ]
    rows = render_rows(tokenizer, examples, system_prompt="Task.", max_length_tokens=100).rows
    texts = [tokenizer.decode(row.input_ids) for row in rows]
    assert "Task." in texts[0]
    assert "Mine." in texts[1] and "Task." not in texts[1]
    assert "Task." not in texts[2]


@pytest.mark.parametrize(
    ("template", "code"),
    [
        # The generation prompt opens a thought that finished turns do not have.
        (
            "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n<think>{% endif %}",
            "prompt-not-a-prefix",
        ),
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", "end-token-missing"),
        (
            "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | upper }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
            "answer-not-recoverable",
        ),
        (
            "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | replace('yes', 'no') }}"
            "<|im_end|>{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
            "answer-not-recoverable",
        ),
        (
            "<|im_start|><|im_start|>{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}",
            "double-bos",
        ),
        ("{{ raise_exception('no system role') }}", "template-refused"),
    ],
)
def test_unsuitable_templates_are_named(template: str, code: str) -> None:
    tokenizer = smollm2_tokenizer()
    original = tokenizer.chat_template
    tokenizer.chat_template = template
    try:
        with pytest.raises(ChatTemplateUnsuitable) as caught:
            render_rows(
                tokenizer,
                [Example(example_id="x", messages=tuple(make_messages("yes")))],
                system_prompt=None,
                max_length_tokens=100,
            )
    finally:
        tokenizer.chat_template = original
    assert caught.value.code == code
