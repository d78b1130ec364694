"""From conversations to token ids and labels: only the answer and its end token are in the loss (MISSION C1).

Ids come out of the chat template exactly as in evaluation: the template renders text, which is tokenised
without adding special tokens. What would train something else than the answer is refused instead of guessed
(FACTS section 4).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jinja2.exceptions import TemplateError

from training.engine.data.examples import ChatMessage, Example
from training.engine.errors import ChatTemplateUnsuitable

IGNORED_LABEL = -100
"""The label that torch's cross entropy leaves out."""

_PROBE = "assayprobe"


class ChatTokenizer(Protocol):
    """The part of a Hugging Face tokenizer that is used."""

    bos_token_id: int | None
    eos_token_id: int | None
    pad_token_id: int | None
    all_special_ids: list[int]

    def apply_chat_template(self, conversation: list[dict[str, str]], **kwargs: Any) -> Any:
        """Render a conversation."""

    def encode(self, text: str, **kwargs: Any) -> list[int]:
        """Tokenise a text."""

    def decode(self, token_ids: list[int], **kwargs: Any) -> Any:
        """Turn token ids into text."""


@dataclass(frozen=True, slots=True)
class ChatRow:
    """One example as the model sees it.

    Attributes:
        example_id: Of the example.
        input_ids: Prompt, answer, end token.
        num_prompt_tokens: Number of leading ids that are not trained.
    """

    example_id: str
    input_ids: tuple[int, ...]
    num_prompt_tokens: int

    @property
    def labels(self) -> tuple[int, ...]:
        """Labels, as long as ``input_ids``: -100 for the prompt, the id itself from the answer on."""
        return (IGNORED_LABEL,) * self.num_prompt_tokens + self.input_ids[self.num_prompt_tokens :]

    @property
    def num_trained_tokens(self) -> int:
        """Number of tokens in the loss, the end token included; at least 1."""
        return len(self.input_ids) - self.num_prompt_tokens


@dataclass(frozen=True, slots=True)
class DroppedExample:
    """An example that is not trained on, and why."""

    example_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class RenderedRows:
    """All rows of a file, and what was left out of them."""

    rows: tuple[ChatRow, ...]
    dropped: tuple[DroppedExample, ...]


def find_end_token_id(tokenizer: ChatTokenizer) -> int:
    """Return the token that the template puts after an answer, at which serving stops.

    Raises:
        ChatTemplateUnsuitable: ``end-token-missing`` when no special token follows the answer,
            ``answer-not-recoverable`` when the template changes the answer.
    """
    text = _render(
        tokenizer,
        [ChatMessage("user", "question"), ChatMessage("assistant", _PROBE)],
        add_generation_prompt=False,
    )
    _, found, tail = text.rpartition(_PROBE)
    if not found:
        raise ChatTemplateUnsuitable(
            "answer-not-recoverable", "The chat template changes answers; use one that writes them unchanged."
        )
    special = set(tokenizer.all_special_ids)
    for token in tokenizer.encode(tail, add_special_tokens=False):
        if token in special:
            return token
    raise ChatTemplateUnsuitable(
        "end-token-missing",
        "The chat template puts no special token after the assistant's answer, so a model trained with it "
        "would never learn to stop. Use a template that ends each answer with the end token.",
    )


def with_system_prompt(example: Example, system_prompt: str | None) -> tuple[ChatMessage, ...]:
    """Return the messages with the system prompt in front, unless they have one or are general data."""
    if system_prompt is None or example.is_general or example.messages[0].role == "system":
        return example.messages
    return (ChatMessage("system", system_prompt), *example.messages)


def render_prompt_ids(tokenizer: ChatTokenizer, messages: Sequence[ChatMessage]) -> list[int]:
    """Return the ids from which the model generates its answer.

    Raises:
        ChatTemplateUnsuitable: ``template-refused`` or ``double-bos``.
    """
    return _encode_prompt(tokenizer, _render(tokenizer, messages, add_generation_prompt=True))


def render_row(
    tokenizer: ChatTokenizer, example_id: str, messages: Sequence[ChatMessage], *, end_token_id: int
) -> ChatRow:
    """Render a conversation whose last message is the assistant's answer.

    What the template writes after the end token (a line break) is cut off: no prompt of serving ends with it.

    Raises:
        ChatTemplateUnsuitable: ``prompt-not-a-prefix`` when the prompt is not the beginning of the whole
            conversation (templates that rewrite history), ``answer-not-recoverable`` when the trained tokens
            do not decode to the answer, ``template-refused``, ``double-bos``.
    """
    prompt = _render(tokenizer, messages[:-1], add_generation_prompt=True)
    whole = _render(tokenizer, messages, add_generation_prompt=False)
    if not whole.startswith(prompt):
        raise ChatTemplateUnsuitable(
            "prompt-not-a-prefix",
            f"Example {example_id!r}: the prompt is not the beginning of the whole conversation, so the "
            "model would be trained on another prompt than it is asked with. The chat template rewrites "
            "earlier turns, or its generation prompt differs from the start of an answer.",
        )
    prompt_ids = _encode_prompt(tokenizer, prompt)
    tail = _encode_tail(tokenizer, prompt_ids, prompt=prompt, whole=whole)
    end = len(tail) - 1 - tail[::-1].index(end_token_id) if end_token_id in tail else None
    if end is None or not _is_same_text(tokenizer, tail[:end], messages[-1].content):
        raise ChatTemplateUnsuitable(
            "answer-not-recoverable",
            f"Example {example_id!r}: the tokens after the prompt do not decode to the answer and one end "
            "token. The chat template changes answers; use one that writes them unchanged.",
        )
    return ChatRow(example_id, (*prompt_ids, *tail[: end + 1]), len(prompt_ids))


def render_rows(
    tokenizer: ChatTokenizer,
    examples: Iterable[Example],
    *,
    system_prompt: str | None,
    max_length_tokens: int,
) -> RenderedRows:
    """Render all examples; those that cannot be trained on are dropped and reported, never cut.

    Dropped are rows that are too long, answers that hold the end token, and answers with characters that
    the tokenizer does not know.

    Raises:
        ChatTemplateUnsuitable: See `render_row`; ``answer-not-recoverable`` only if all
            examples are like that.
    """
    end_token_id = find_end_token_id(tokenizer)
    rows: list[ChatRow] = []
    dropped: list[DroppedExample] = []
    unrecoverable: list[ChatTemplateUnsuitable] = []
    for example in examples:
        messages = with_system_prompt(example, system_prompt)
        try:
            row = render_row(tokenizer, example.example_id, messages, end_token_id=end_token_id)
        except ChatTemplateUnsuitable as error:
            if error.code != "answer-not-recoverable":
                raise
            unrecoverable.append(error)
            dropped.append(DroppedExample(example.example_id, "its tokens do not decode to its answer"))
            continue
        if reason := _reason_to_drop(row, end_token_id, max_length_tokens):
            dropped.append(DroppedExample(example.example_id, reason))
        else:
            rows.append(row)
    if unrecoverable and len(unrecoverable) == len(dropped) and not rows:
        raise unrecoverable[0]
    return RenderedRows(tuple(rows), tuple(dropped))


def _reason_to_drop(row: ChatRow, end_token_id: int, max_length_tokens: int) -> str | None:
    if end_token_id in row.input_ids[row.num_prompt_tokens : -1]:
        return "its answer holds the end token"
    if len(row.input_ids) > max_length_tokens:
        return f"{len(row.input_ids)} tokens are more than max_length_tokens ({max_length_tokens})"
    return None


def _render(tokenizer: ChatTokenizer, messages: Sequence[ChatMessage], *, add_generation_prompt: bool) -> str:
    conversation = [{"role": message.role, "content": message.content} for message in messages]
    try:
        return str(
            tokenizer.apply_chat_template(
                conversation, tokenize=False, add_generation_prompt=add_generation_prompt
            )
        )
    except (TemplateError, ValueError) as error:
        raise ChatTemplateUnsuitable(
            "template-refused", f"The chat template cannot render the messages: {error}"
        ) from error


def _encode_prompt(tokenizer: ChatTokenizer, prompt: str) -> list[int]:
    ids = tokenizer.encode(prompt, add_special_tokens=False)
    if tokenizer.bos_token_id is not None and ids[:2] == [tokenizer.bos_token_id] * 2:
        raise ChatTemplateUnsuitable(
            "double-bos", "The rendered prompt begins with two BOS tokens; mend the chat template."
        )
    return ids


def _encode_tail(tokenizer: ChatTokenizer, prompt_ids: list[int], *, prompt: str, whole: str) -> list[int]:
    """Return the ids that follow the prompt's.

    Where a token would reach over the border (an answer that begins with a space after a line break), the two
    parts are tokenised apart: in serving the model also continues from the prompt's own ids.
    """
    whole_ids = tokenizer.encode(whole, add_special_tokens=False)
    if whole_ids[: len(prompt_ids)] == prompt_ids:
        return whole_ids[len(prompt_ids) :]
    return tokenizer.encode(whole[len(prompt) :], add_special_tokens=False)


def _is_same_text(tokenizer: ChatTokenizer, ids: list[int], answer: str) -> bool:
    """Compare exactly; templates that strip answers (Llama 3) are allowed to."""
    text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return bool(text == answer or text == answer.strip())
