"""When two answers are the same in substance: equal JSON, or free texts that are near duplicates."""

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from training.engine.data.making.structured_answers import (
    NotStrictJson,
    flatten_fields,
    parse_strict_json,
    strip_outer_fence,
)
from training.engine.data.near_duplicates.shingle_sets import hash_text
from training.engine.data.shingles import jaccard, make_shingles, normalise

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)
MAX_LABEL_CHARACTERS: Final = 40
"""A JSON string up to this length counts as a label, a longer one as free text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableAnswer:
    """An answer as it is compared.

    Attributes:
        text: Normalised; of JSON one fixed form without the order of keys.
        is_json: Whether it is a JSON object or list. Two of these are the same only when they are equal:
            a large object with one other label is another answer, however similar the text is.
        labels: Of JSON the parts that are no free text, in one fixed form; "" for free text.
    """

    text: str
    is_json: bool
    labels: str


def read_answer(answer: str | None) -> ComparableAnswer:
    """Read an answer; None is read as the empty text."""
    fields = read_answer_fields(answer)
    if fields is None:
        return ComparableAnswer(text=normalise(answer or ""), is_json=False, labels="")
    # Two more characters are the quotation marks.
    labels = {name: value for name, value in fields.items() if len(value) <= MAX_LABEL_CHARACTERS + 2}
    return ComparableAnswer(text=_to_text(fields), is_json=True, labels=_to_text(labels))


# Those who look at an example mostly do so more than once before the next one comes.
@lru_cache(maxsize=2)
def read_answer_fields(answer: str | None) -> Mapping[str, str] | None:
    """Return the leaves of a JSON answer, JSON pointer to compact JSON; None when it is no object or list."""
    body = strip_outer_fence(answer or "")
    if not body.startswith(("{", "[")):
        return None
    try:
        return flatten_fields(parse_strict_json(body))
    except NotStrictJson:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDigest:
    """What is kept of an answer to compare others with; it holds no text.

    Attributes:
        is_json: As of the answer.
        text: Hash of the answer's text.
        labels: Hash of its labels.
        shingles: Hashes of the shingles of a free text; empty for JSON.
    """

    is_json: bool
    text: int
    labels: int
    shingles: "array[int]"


def digest_answer(answer: ComparableAnswer) -> AnswerDigest:
    """Return what is kept of an answer."""
    shingles = () if answer.is_json else sorted(make_shingles(answer.text))
    return AnswerDigest(
        is_json=answer.is_json,
        text=hash_text(answer.text),
        labels=hash_text(answer.labels),
        shingles=array("Q", map(hash_text, shingles)),
    )


def is_same_answer(left: AnswerDigest, right: AnswerDigest, *, threshold: float) -> bool:
    """Return whether two answers say the same.

    Free texts do when the similarity of their shingles is the threshold or more, so differences of
    punctuation, width and case never count.
    """
    if left.text == right.text and left.is_json == right.is_json:
        return True
    if left.is_json or right.is_json:
        return False
    return jaccard(frozenset(left.shingles), frozenset(right.shingles)) >= threshold


def _to_text(fields: Mapping[str, str]) -> str:
    return _ENCODER.encode(sorted(fields.items()))
