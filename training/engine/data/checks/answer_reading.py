"""Reading a reference answer: as JSON with its fields, or as text."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MAX_LEAVES = 500
"""Values looked at in one answer; the rest of a longer one is passed over."""
_MAX_DEPTH = 20
_MAX_KEY_CHARACTERS = 60
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_WORD = re.compile(r"[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonAnswer:
    """An answer that is one JSON object or array.

    Attributes:
        value: As parsed; of a repeated key the last value.
        has_repeated_keys: Whether some object names a key twice, which parsers accept silently.
    """

    value: Any
    has_repeated_keys: bool


# All checks look at one example before the next one comes.
@lru_cache(maxsize=2)
def read_json_answer(answer: str) -> JsonAnswer | None:
    """Return the answer when it is a JSON object or array and nothing else, None when it is text.

    The value is shared with other callers: nobody changes it.
    """
    if answer.lstrip()[:1] not in ("{", "["):
        return None
    repeated: list[bool] = []

    def read_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(pairs)
        repeated.append(len(read) < len(pairs))
        return read

    try:
        value = json.loads(answer, object_pairs_hook=read_pairs)
    except (ValueError, RecursionError):
        return None
    return JsonAnswer(value=value, has_repeated_keys=any(repeated))


def iterate_leaves(value: Any, path: str = "answer", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of each text, number, boolean and null, such as ``answer/slots/city`` or
    ``answer/items[]``; what lies deeper than 20 levels is passed over.
    """
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from iterate_leaves(item, f"{path}/{key[:_MAX_KEY_CHARACTERS]}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from iterate_leaves(item, f"{path}[]", depth + 1)
    else:
        yield path, value


def iterate_objects(
    value: Any, path: str = "answer", depth: int = 0
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (path, object) of each object, the outermost first, to the same depth."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        yield path, value
        for key, item in value.items():
            yield from iterate_objects(item, f"{path}/{key[:_MAX_KEY_CHARACTERS]}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from iterate_objects(item, f"{path}[]", depth + 1)


def count_words(text: str) -> int:
    """Return the number of words; a Chinese, Japanese or Korean character counts as two thirds of one, so
    that 12 characters weigh like 8 words.
    """
    return sum(1 for _ in _WORD.finditer(text)) + len(_CJK.findall(text)) * 2 // 3


def has_cjk(text: str) -> bool:
    """Return whether a Chinese, Japanese or Korean character stands in the text."""
    return _CJK.search(text) is not None
