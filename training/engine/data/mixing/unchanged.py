"""Examples with nothing to change: they teach a model that rewrites or corrects to leave good text alone."""

from collections.abc import Iterable

from training.engine.data.examples import ChatMessage, Example


def is_unchanged(example: Example) -> bool:
    """Return whether the answer is what the user's last message says, white space aside.

    Width, case and punctuation count: they may be what a task corrects.
    """
    text = _last_input(example)
    return bool(text) and _collapse(example.answer or "") == text


def complete_unchanged(example: Example) -> Example | None:
    """Return an example of a pool of unchanged ones with its answer; None when it is no such example.

    One without an answer gets the user's last message as its answer, with ``reference_source`` "rule".
    """
    if is_unchanged(example):
        return example
    if example.answer is not None or not _last_input(example) or example.messages[-1].role != "user":
        return None
    messages = (*example.messages, ChatMessage("assistant", example.messages[-1].content))
    return Example(
        example_id=example.example_id,
        messages=messages,
        is_general=example.is_general,
        fields={**example.fields, "reference_source": "rule"},
    )


def find_unchanged(pool: Iterable[Example]) -> list[int]:
    """Return the places of those examples of a pool that ``complete_unchanged`` takes."""
    return [place for place, example in enumerate(pool) if complete_unchanged(example) is not None]


def _last_input(example: Example) -> str:
    texts = [message.content for message in example.messages if message.role == "user"]
    return _collapse(texts[-1]) if texts else ""


def _collapse(text: str) -> str:
    return " ".join(text.split())
