"""Checks of the chat template: it is the base's own, and no other template's marks stand in the texts."""

from collections.abc import Sequence
from typing import Final

from training.engine.chat import ChatTokenizer, render_prompt_ids
from training.engine.data.checks.template_tokens import find_special_tokens
from training.engine.data.examples import ChatMessage
from training.engine.errors import ChatTemplateUnsuitable
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.data_view import DataView
from training.engine.preflight.decoding import decode
from training.engine.preflight.outcomes import failed, judge_part, passed, skipped, warned
from training.engine.preflight.report import CheckResult

_PLAIN_MARKERS: Final = frozenset(
    ("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<|user|>", "<|assistant|>", "<|system|>", "<s>", "</s>")
)
"""Marks that Llama 2, Mistral and Zephyr write as plain text: their own tokenizers split them too."""


def check_template(view: DataView) -> CheckResult:
    """The marks that the template writes are tokens of this tokenizer, and not those of another family."""
    text = _render_probe(view)
    markers = dict.fromkeys(_find_markers(text))
    split = [marker for marker in markers if not _is_one_token(view.tokenizer, marker)]
    own = _list_own_markers(view.tokenizer)
    foreign = [marker for marker in split if own or marker not in _PLAIN_MARKERS]
    if not foreign:
        return passed("template-of-this-model", "the template's marks are tokens of the base's tokenizer")
    listed = ", ".join(foreign[:5])
    # Answers end with the base's own end token whatever template the rest was rendered with.
    ends = {decode(view.tokenizer, [token]) for token in view.end_ids}
    is_unused = not any(marker in own and marker not in ends for marker in markers)
    message = (
        f"the chat template writes {listed}, which the base's tokenizer splits into plain pieces"
        + (f"; its own marks ({', '.join(own[:3])}) are not used" if own and is_unused else "")
        + ": it is the template of another model"
    )
    remedy = "Use the base's own chat template: take it from the folder of the base model."
    judge = failed if is_unused or not own else warned
    return judge("template-of-this-model", HandbookRow.WRONG_DATA, message, remedy=remedy)


def check_marks_in_texts(view: DataView) -> CheckResult:
    """No message holds a chat template's marks: the template writes them."""
    if not view.examples:
        return _check_marks_in_answers(view)
    wrong = {
        example.example_id: marks
        for example in view.examples
        if (marks := [mark for message in example.messages for mark in _find_markers(message.content)])
    }
    return _judge_marks(wrong, "messages", len(view.examples))


def _check_marks_in_answers(view: DataView) -> CheckResult:
    """For rows that were tokenised elsewhere: no mark inside of the decoded answers."""
    if not view.rows:
        return skipped("no-marks-in-texts", "there is no text")
    ends = {decode(view.tokenizer, [token]) for token in view.end_ids}
    wrong = {
        row.example_id: marks
        for row in view.sample
        if (marks := [m for m in _find_markers(decode(view.tokenizer, row.trained_ids)) if m not in ends])
    }
    return _judge_marks(wrong, "answers", len(view.sample))


def _judge_marks(wrong: dict[str, list[str]], place: str, num_all: int) -> CheckResult:
    if not wrong:
        return passed("no-marks-in-texts", f"no template's marks stand in the {place} of {num_all} examples")
    marks = dict.fromkeys(mark for found in wrong.values() for mark in found)
    return judge_part(
        "no-marks-in-texts",
        HandbookRow.TEMPLATE_TOKENS_IN_OUTPUT,
        f"marks of a chat template ({', '.join(list(marks)[:5])}) stand inside the {place} of {len(wrong)} "
        f"of {num_all} examples: the model learns to write them",
        remedy="Take the marks out of the texts; where a whole rendered conversation was stored as one "
        "text, split it into messages again.",
        example_ids=list(wrong),
        num_all=num_all,
    )


def _render_probe(view: DataView) -> str:
    """Return what the template writes around a conversation; of rows from elsewhere, what is in all of
    them.
    """
    conversation = [
        ChatMessage("user", "question"),
        ChatMessage("assistant", "answer"),
        ChatMessage("user", "question"),
    ]
    try:
        text = decode(view.tokenizer, render_prompt_ids(view.tokenizer, conversation))
    except ChatTemplateUnsuitable:
        text = ""  # told by the check of the prompts
    if view.examples:
        return text
    found = [set(_find_markers(decode(view.tokenizer, row.input_ids))) for row in view.sample]
    return " ".join(sorted(set.intersection(*found))) if found else text


def _find_markers(text: str) -> list[str]:
    # Headings such as "### Input:" are marks of templates without tokens, and of many healthy prompts.
    return [marker for marker in find_special_tokens(text) if not marker.startswith("#")]


def _is_one_token(tokenizer: ChatTokenizer, marker: str) -> bool:
    return len(tokenizer.encode(marker, add_special_tokens=False)) == 1


def _list_own_markers(tokenizer: ChatTokenizer) -> Sequence[str]:
    """Return the tokens of turns that this tokenizer has, such as ``<|im_start|>``."""
    texts = (decode(tokenizer, [token]) for token in tokenizer.all_special_ids)
    turns = ("start", "end", "user", "assistant", "inst", "turn", "eot", "header")
    return [
        text
        for text in texts
        if _find_markers(text) == [text]
        and any(part in text.lower() for part in turns)
        and text not in ("<|endoftext|>", "<|begin_of_text|>", "<|end_of_text|>", "</s>")
    ]
