"""The check of the system prompt: it stands in the rendered prompt once (seed 000: a template that wrote it
twice cost a team three rounds of learning rates).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from training.engine.chat import render_prompt_ids
from training.engine.data.examples import ChatMessage
from training.engine.errors import ChatTemplateUnsuitable
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.data_view import DataView
from training.engine.preflight.decoding import decode
from training.engine.preflight.outcomes import judge_part, passed, warned
from training.engine.preflight.report import CheckResult

CODE: Final = "single-system-prompt"
_MIN_CHARACTERS: Final = 20
"""Shorter texts (a name, "Be brief.") stand in other messages by chance."""
_MIN_SENTENCE_CHARACTERS: Final = 30
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s*|\n+")


def check_system_prompt(view: DataView) -> CheckResult:
    """No system prompt stands twice in a prompt: in the data, by the configuration, or by the template."""
    if not view.examples:
        return _check_decoded(view)
    wrong = {
        name: reason
        for name, messages in view.messages.items()
        if (reason := _find_doubled(messages)) is not None
    }
    num_all = len(view.messages)
    if not wrong:
        wrong = _find_doubled_by_template(view)
        num_all = min(num_all, len(view.sample))
    if not wrong:
        return passed(CODE, f"the system prompt stands once at most in {len(view.messages)} examples")
    reasons = ", ".join(sorted(set(wrong.values())))
    return judge_part(
        CODE,
        HandbookRow.WRONG_DATA,
        f"in {len(wrong)} of {num_all} examples the system prompt stands twice: {reasons}",
        remedy="Keep one of the two: take it out of the data or leave data.system_prompt out, and look at "
        "the decoded rows.",
        example_ids=list(wrong),
        num_all=num_all,
    )


def _find_doubled(messages: Sequence[ChatMessage]) -> str | None:
    systems = [message.content.strip() for message in messages if message.role == "system"]
    if len(systems) > 1:
        return "there are several system messages"
    if not systems:
        return None
    if _is_doubled(systems[0]):
        return "the system message says everything twice"
    others = (message.content for message in messages if message.role == "user")
    if len(systems[0]) >= _MIN_CHARACTERS and any(systems[0] in content for content in others):
        return "the user's message repeats it"
    return None


def _is_doubled(text: str) -> bool:
    words = text.split()
    half = len(words) // 2
    return len(text) >= 2 * _MIN_CHARACTERS and len(words) % 2 == 0 and words[:half] == words[half:]


def _find_doubled_by_template(view: DataView) -> dict[str, str]:
    wrong = {}
    for row in view.sample:
        messages = view.messages.get(row.example_id, ())
        systems = [message.content.strip() for message in messages if message.role == "system"]
        if not systems or len(systems[0]) < _MIN_CHARACTERS:
            continue
        try:
            text = decode(view.tokenizer, render_prompt_ids(view.tokenizer, messages[:-1]))
        except ChatTemplateUnsuitable:
            continue  # told by the check of the prompts
        if text.count(systems[0]) > 1:
            wrong[row.example_id] = "the template writes it twice"
    return wrong


def _check_decoded(view: DataView) -> CheckResult:
    """For rows that were tokenised elsewhere: look for a sentence that all prompts begin with twice."""
    texts = [
        decode(view.tokenizer, row.input_ids[: row.num_prompt_tokens or len(row.input_ids)])
        for row in view.sample
    ]
    head = _common_beginning(texts)
    doubled = _list_doubled(_SENTENCE.split(head))
    if not doubled:
        return passed(CODE, f"no sentence stands twice in what {len(texts)} prompts begin with")
    return warned(
        CODE,
        HandbookRow.WRONG_DATA,
        f"all prompts begin with a text that says twice: {doubled[0][:80]!r}",
        remedy="Look at the decoded rows: the system prompt may have been put in two times.",
        example_ids=[row.example_id for row in view.sample],
    )


def _common_beginning(texts: Sequence[str]) -> str:
    """Return what several texts begin with; "" of fewer than two."""
    if len(texts) < 2:
        return ""
    first, last = min(texts), max(texts)
    pairs = zip(first, last, strict=False)
    length = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))
    return first[:length]


def _list_doubled(sentences: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    doubled = []
    for sentence in (part.strip() for part in sentences):
        if len(sentence) >= _MIN_SENTENCE_CHARACTERS and sentence in seen:
            doubled.append(sentence)
        seen.add(sentence)
    return doubled
