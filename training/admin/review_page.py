"""One example of a review made ready for the page."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString

from registry.choices import EVALUATION_ROLES
from registry.visible_text import visible_text
from training.choices import ReviewVerdict
from training.models import ReviewItem, ReviewTask
from training.services.reviews import answer_of_line

_SHOWN_KEYS = frozenset({"id", "messages", "tags"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """One turn; `is_answer` for the reference that is to be judged."""

    role: str
    text: SafeString
    is_answer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewProgress:
    """How far a review is, in examples and in percent of all."""

    num_done: int
    num_examples: int
    percent: int


def build_item_context(task: ReviewTask, item: ReviewItem, draft: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows of one example.

    Args:
        task: With its counts, as `get_review` gives it.
        item: One of its items.
        draft: What the person had written when the page is shown again; empty at first.
    """
    document = json.loads(item.line)
    answer = answer_of_line(item.line)
    num_done = task.num_examples - task.num_open  # type: ignore[attr-defined]  # annotated by the selector
    return {
        "task": task,
        "item": item,
        "messages_shown": tuple(_shown_messages(document, answer)),
        "labels": tuple(_labels(document)),
        "facts": tuple(_facts(document)),
        "answer": answer,
        # A fix begins with the answer as it stands, so that what is not touched stays as it was.
        "fixed_answer": draft.get("fixed_answer") or item.fixed_answer or answer,
        "note": draft.get("note", item.note),
        "is_fix_open": item.verdict == ReviewVerdict.FIX or draft.get("verdict") == ReviewVerdict.FIX,
        "progress": ReviewProgress(
            num_done=num_done,
            num_examples=task.num_examples,
            percent=round(100 * num_done / task.num_examples),
        ),
        "is_evaluation_set": task.dataset_version.dataset.role in EVALUATION_ROLES,
        "previous_url": _item_url(task, item.position - 1),
        "next_url": _item_url(task, item.position + 1),
    }


def _shown_messages(document: Mapping[str, Any], answer: str) -> Iterator[ShownMessage]:
    messages = document["messages"]
    for index, message in enumerate(messages):
        is_answer = index == len(messages) - 1 and message["role"] == "assistant"
        text = _readable(answer) if is_answer else message["content"]
        yield ShownMessage(role=message["role"], text=visible_text(text), is_answer=is_answer)
    if messages[-1]["role"] != "assistant" and answer:
        yield ShownMessage(role="reference", text=visible_text(_readable(answer)), is_answer=True)


def _readable(answer: str) -> str:
    """A JSON object one field a line; every other answer as it stands."""
    value = _structure_of(answer)
    return answer if value is None else json.dumps(value, ensure_ascii=False, indent=2)


def _structure_of(answer: str) -> dict[str, Any] | None:
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _labels(document: Mapping[str, Any]) -> Iterator[str]:
    tags = document.get("tags")
    if isinstance(tags, Mapping):
        yield from (f"{name}: {value}" for name, value in tags.items())


def _facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What else the line says, such as where it comes from and who made the reference."""
    for key, value in document.items():
        if key not in _SHOWN_KEYS:
            yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _item_url(task: ReviewTask, position: int) -> str:
    if not 1 <= position <= task.num_examples:
        return ""
    return reverse("admin:training_reviewtask_item", args=(task.pk, position))
