import hashlib
from typing import Any

import pytest

from evaluation.engine.errors import PromptError
from evaluation.engine.examples import Example, Message
from evaluation.engine.prompts import (
    ChatFormat,
    assemble_messages,
    build_chat_format,
    chat_template_sha256,
    decode_raw,
    encode_continuation,
    render_prompt,
)
from evaluation.engine.suite import FewShot
from tests.fixtures.models import smollm2_tokenizer

USER = Message("user", "Hi")
OWN_SYSTEM = Message("system", "own")


def example(*messages: Message) -> Example:
    return Example(id="e", messages=messages, reference=None)


@pytest.fixture(scope="module")
def chat() -> ChatFormat:
    return build_chat_format(smollm2_tokenizer())


def roles(messages: tuple[Message, ...]) -> list[str]:
    return [f"{message.role}:{message.content}" for message in messages]


def test_the_suites_system_prompt_is_put_in_front_only_when_there_is_none() -> None:
    assert roles(assemble_messages(example(USER), system_prompt="S")) == ["system:S", "user:Hi"]
    assert roles(assemble_messages(example(OWN_SYSTEM, USER), system_prompt="S")) == ["system:own", "user:Hi"]
    assert roles(assemble_messages(example(USER), system_prompt=None)) == ["user:Hi"]


def test_the_baselines_prompt_replaces_and_its_demonstrations_come_before_the_conversation() -> None:
    messages = assemble_messages(
        example(OWN_SYSTEM, USER), system_prompt="B", few_shot=[FewShot("q", "a")], replace_system=True
    )
    assert roles(messages) == ["system:B", "user:q", "assistant:a", "user:Hi"]


def test_rendering_is_the_template_tokenised_once(chat: ChatFormat) -> None:
    prompt = render_prompt(chat, (Message("system", "S"), USER))
    text = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert chat.tokenizer.decode(list(prompt.token_ids)) == text
    # Exactly the ids that the tokenizer's own rendering gives, as training uses it.
    own = smollm2_tokenizer().apply_chat_template(
        [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}],
        add_generation_prompt=True,
        return_dict=False,
    )
    assert list(prompt.token_ids) == own


def test_stop_tokens_are_eos_and_the_templates_end_of_turn(chat: ChatFormat) -> None:
    assert chat.stop_token_ids == (2,)  # <|im_end|> is both for SmolLM2


def test_another_end_of_turn_token_is_a_stop_token_too() -> None:
    class OtherEnd:
        bos_token_id = 1
        eos_token_id = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(smollm2_tokenizer(), name)

    assert build_chat_format(OtherEnd()).stop_token_ids == (0, 2)  # type: ignore[arg-type]


def test_the_template_is_hashed(chat: ChatFormat) -> None:
    assert chat.template_sha256 == hashlib.sha256(chat.template.encode()).hexdigest()
    assert chat_template_sha256("a") != chat_template_sha256("b")


def test_two_bos_tokens_are_refused(chat: ChatFormat) -> None:
    doubled = ChatFormat(chat.tokenizer, "<|im_start|>" + chat.template, "", chat.stop_token_ids)
    with pytest.raises(PromptError, match="two BOS"):
        render_prompt(doubled, (USER,))


def test_what_the_template_refuses_is_a_prompt_error(chat: ChatFormat) -> None:
    refusing = ChatFormat(chat.tokenizer, "{{ raise_exception('no system role') }}", "", chat.stop_token_ids)
    with pytest.raises(PromptError, match="no system role"):
        render_prompt(refusing, (USER,))


@pytest.mark.parametrize(
    ("template", "code"), [(None, "chat-template-missing"), ({"tool": "x"}, "chat-template-ambiguous")]
)
def test_a_tokenizer_without_a_clear_template_is_refused(template: Any, code: str) -> None:
    class NoTemplate:
        chat_template = template

    with pytest.raises(PromptError) as error:
        build_chat_format(NoTemplate())  # type: ignore[arg-type]
    assert error.value.code == code


def test_raw_text_spells_out_special_tokens_but_the_last_stop_token(chat: ChatFormat) -> None:
    ids = chat.tokenizer.encode("a<|im_start|>b<|im_end|>", add_special_tokens=False)
    assert decode_raw(chat, ids) == "a<|im_start|>b"
    assert decode_raw(chat, []) == ""


def test_a_continuation_has_no_special_tokens(chat: ChatFormat) -> None:
    assert chat.tokenizer.decode(list(encode_continuation(chat, "egg cell"))) == "egg cell"
    with pytest.raises(PromptError, match="no tokens"):
        encode_continuation(chat, "")
