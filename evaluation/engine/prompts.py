"""From an example to token ids: the messages, the chat template, the stop tokens.

The template is given explicitly, its text is hashed, and what it renders is tokenised without adding special
tokens: the same steps as in training, and no second BOS. Tokenizers come from ``backends.tokenizer``; here
they are a Protocol.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from evaluation.engine.errors import PromptError
from evaluation.engine.examples import AnyExample, Message
from evaluation.engine.suite import FewShot

_PROBE: Final = "assayprobe"


class ChatTokenizer(Protocol):
    """The part of a Hugging Face tokenizer that is used."""

    bos_token_id: int | None
    eos_token_id: int | None
    chat_template: Any
    all_special_tokens: list[str]
    all_special_ids: list[int]

    def apply_chat_template(self, conversation: list[dict[str, str]], **kwargs: Any) -> Any:
        """Render a conversation."""

    def encode(self, text: str, **kwargs: Any) -> list[int]:
        """Tokenise a text."""

    def decode(self, token_ids: list[int], **kwargs: Any) -> Any:
        """Turn token ids into text."""


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """A tokenizer with the chat template in force.

    Attributes:
        tokenizer: The base model's tokenizer.
        template: Text of the chat template.
        template_sha256: sha256 of that text, hexadecimal.
        stop_token_ids: Generation ends at any of these: the tokenizer's end token and the template's
            end-of-turn token, which are not always the same (then a model "never stops").
    """

    tokenizer: ChatTokenizer
    template: str
    template_sha256: str
    stop_token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as the model reads it."""

    messages: tuple[Message, ...]
    token_ids: tuple[int, ...]


def chat_template_sha256(template: str) -> str:
    """Return the sha256 of a chat template's text."""
    return hashlib.sha256(template.encode()).hexdigest()


def build_chat_format(tokenizer: ChatTokenizer) -> ChatFormat:
    """Take the tokenizer's own chat template and find its stop tokens.

    Raises:
        PromptError: The tokenizer has no chat template (``chat-template-missing``), several
            (``chat-template-ambiguous``) or no way to stop (``no-stop-token``).
    """
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default") if "default" in template else None
        if template is None:
            raise PromptError(
                "chat-template-ambiguous", "the tokenizer has several chat templates and no default one"
            )
    if not isinstance(template, str) or not template.strip():
        raise PromptError(
            "chat-template-missing",
            "the base model's tokenizer has no chat template; "
            "register the base model with its chat_template.jinja",
        )
    stop = {tokenizer.eos_token_id, _end_of_turn_token_id(tokenizer, template)} - {None}
    if not stop:
        raise PromptError("no-stop-token", "neither the tokenizer nor its chat template has an end token")
    stop_ids = tuple(sorted(token for token in stop if token is not None))
    return ChatFormat(tokenizer, template, chat_template_sha256(template), stop_ids)


def assemble_messages(
    example: AnyExample,
    *,
    system_prompt: str | None,
    few_shot: Sequence[FewShot] = (),
    replace_system: bool = False,
) -> tuple[Message, ...]:
    """Return the conversation that the model is asked to continue.

    Args:
        example: Its messages (the reference is not among them).
        system_prompt: Put in front when the example has no system message; None adds none.
        few_shot: Demonstrations between the system message and the conversation.
        replace_system: Whether ``system_prompt`` also replaces the example's own system message (baseline
            prompts).
    """
    own = example.messages[:1] if example.messages[0].role == "system" else ()
    rest = example.messages[len(own) :]
    if system_prompt and (replace_system or not own):
        own = (Message("system", system_prompt),)
    shots = tuple(
        message
        for shot in few_shot
        for message in (Message("user", shot.user), Message("assistant", shot.assistant))
    )
    return (*own, *shots, *rest)


def render_prompt(chat: ChatFormat, messages: Sequence[Message]) -> RenderedPrompt:
    """Render messages with the generation prompt and tokenise them.

    Raises:
        PromptError: The template refuses the messages (``template-refused``) or the ids begin with two BOS
            tokens (``double-bos``).
    """
    text = _render(chat.tokenizer, chat.template, messages, add_generation_prompt=True)
    token_ids = tuple(chat.tokenizer.encode(text, add_special_tokens=False))
    bos = chat.tokenizer.bos_token_id
    if bos is not None and token_ids[:2] == (bos, bos):
        raise PromptError(
            "double-bos", "the rendered prompt begins with two BOS tokens; mend the chat template"
        )
    return RenderedPrompt(tuple(messages), token_ids)


def encode_continuation(chat: ChatFormat, text: str) -> tuple[int, ...]:
    """Tokenise an answer option that follows a rendered prompt, without special tokens.

    Raises:
        PromptError: The text has no token (``empty-continuation``).
    """
    token_ids = tuple(chat.tokenizer.encode(text, add_special_tokens=False))
    if not token_ids:
        raise PromptError("empty-continuation", f"the option {text!r} has no tokens")
    return token_ids


def decode_raw(chat: ChatFormat, token_ids: Sequence[int]) -> str:
    """Return an output's text with special tokens spelled out, without the stop token that ended it."""
    ids = list(token_ids)
    if ids and ids[-1] in chat.stop_token_ids:
        ids.pop()
    return str(chat.tokenizer.decode(ids, skip_special_tokens=False))


def _render(
    tokenizer: ChatTokenizer, template: str, messages: Sequence[Message], *, add_generation_prompt: bool
) -> str:
    # Jinja's errors are several classes of a package that the web process does not have; TemplateError
    # derives from Exception, and transformers turns raise_exception() of a template into it.
    from jinja2.exceptions import TemplateError

    try:
        return str(
            tokenizer.apply_chat_template(
                [message.to_json() for message in messages],
                chat_template=template,
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
            )
        )
    except TemplateError as error:
        raise PromptError("template-refused", f"the chat template refuses the messages: {error}") from error


def _end_of_turn_token_id(tokenizer: ChatTokenizer, template: str) -> int | None:
    """Return the first special token after an assistant's message, or None when the template puts none
    there.
    """
    messages = (Message("user", "question"), Message("assistant", _PROBE))
    text = _render(tokenizer, template, messages, add_generation_prompt=False)
    _, found, tail = text.rpartition(_PROBE)
    if not found or not tail:
        return None
    special = set(tokenizer.all_special_ids)
    ids = tokenizer.encode(tail, add_special_tokens=False)
    return next((token for token in ids if token in special), None)
