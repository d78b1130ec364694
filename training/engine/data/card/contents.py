"""The numbers of one set: what it holds, counted in one pass with bounded memory."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from training.engine.data.cleaning.step import TokenCounter
from training.engine.data.distributions import LengthCounter
from training.engine.data.examples import Example
from training.engine.data.shingles import normalise

MAX_VALUES_PER_FIELD = 30
"""Values of one field beyond this many are counted together, as in the registry's own card."""
MAX_FIELDS = 40
MAX_TRACKED_VALUES = 2000
"""A field with more different values is free text, not a label: it is left out."""
MAX_VALUE_CHARACTERS = 80
OTHER_VALUES = "…"
VERIFIED_SOURCES = frozenset({"person", "rule"})

_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_SCRIPTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("kana", re.compile(r"[\u3040-\u30ff]")),
    ("hangul", re.compile(r"[\uac00-\ud7af]")),
    ("han", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")),
    ("cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("latin", _LATIN),
)
MIN_SCRIPT_FRACTION = 0.2
"""A script with this part of the letters names the text; two such scripts make it mixed."""


def find_script(text: str) -> str:
    """Return the script that a text is written in: han, kana, hangul, latin, cyrillic, arabic, mixed (two
    with a fifth of the letters or more; kana and han together are kana), or none (no letters of these).
    """
    if text.isascii():
        return "latin" if _LATIN.search(text) else "none"
    counts = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS}
    total = sum(counts.values())
    if not total:
        return "none"
    if counts["kana"] and counts["kana"] >= MIN_SCRIPT_FRACTION * (counts["kana"] + counts["han"]):
        counts["kana"] += counts.pop("han")
    present = [name for name, num in counts.items() if num >= MIN_SCRIPT_FRACTION * total]
    return present[0] if len(present) == 1 else "mixed"


class ContentsCounter:
    """Counts what one set holds.

    Args:
        count_tokens: Gives token lengths; None leaves them out.
    """

    def __init__(self, count_tokens: TokenCounter | None) -> None:
        self._count_tokens = count_tokens
        self._input_characters, self._answer_characters = LengthCounter(), LengthCounter()
        self._total_tokens = LengthCounter()
        self._sources: Counter[str] = Counter()
        self._scripts: Counter[str] = Counter()
        self._origins: Counter[str] = Counter()
        self._categories: Counter[str] = Counter()
        self._tags: dict[str, Counter[str]] = {}
        self._fields: dict[str, Counter[str]] = {}
        self._num_examples = self._num_confirmed = self._num_verified = 0
        self._num_general = self._num_unchanged = 0

    def add(self, example: Example) -> None:
        """Count one example."""
        answer = example.answer or ""
        fields = example.fields
        self._num_examples += 1
        self._num_general += example.is_general
        self._num_unchanged += bool(answer) and normalise(answer) == normalise(example.input_text)
        source = fields.get("reference_source")
        self._sources[source if isinstance(source, str) else "unknown"] += 1
        is_confirmed = bool(fields.get("confirmed_by"))
        self._num_confirmed += is_confirmed
        self._num_verified += is_confirmed or source in VERIFIED_SOURCES
        self._scripts[find_script(example.input_text)] += 1
        self._origins[str(example.origin.get("kind", "unknown"))] += 1
        self._input_characters.add(len(example.input_text))
        self._answer_characters.add(len(answer))
        if self._count_tokens is not None:
            self._total_tokens.add(sum(self._count_tokens(message.content) for message in example.messages))
        self._count_labels(example, answer)

    def to_json(self) -> dict[str, Any]:
        """Return the set's card."""
        has_tokens = self._count_tokens is not None
        return {
            "num_examples": self._num_examples,
            "num_verified": self._num_verified,
            "num_confirmed": self._num_confirmed,
            "num_general": self._num_general,
            "num_unchanged": self._num_unchanged,
            "sources": _shown(self._sources),
            "scripts": _shown(self._scripts),
            "origins": _shown(self._origins),
            "lengths": {
                "input_characters": self._input_characters.histogram().to_json(),
                "answer_characters": self._answer_characters.histogram().to_json(),
                "total_tokens": self._total_tokens.histogram().to_json() if has_tokens else None,
            },
            "fields": {name: _shown(counts) for name, counts in self._fields.items() if _is_label(counts)},
            "tags": {name: _shown(counts) for name, counts in sorted(self._tags.items())},
            "categories": _shown(self._categories),
        }

    def _count_labels(self, example: Example, answer: str) -> None:
        for tag, value in example.tags.items():
            _count_value(self._tags, str(tag), str(value))
        category = example.fields.get("category") or example.fields.get("dimension")
        if isinstance(category, str) and len(self._categories) < MAX_TRACKED_VALUES:
            self._categories[category[:MAX_VALUE_CHARACTERS]] += 1
        for path, value in iterate_leaves(answer):
            _count_value(self._fields, path, value)


def iterate_leaves(answer: str) -> Iterator[tuple[str, str]]:
    """Yield (path, value as text) of the leaves of an answer that is one JSON object; nothing for others.

    Elements of a list share the path of the list with ``[]`` behind it.
    """
    if not answer.lstrip().startswith("{"):
        return
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, dict):
            waiting.extend(
                (f"{path}/{key}" if path else str(key), item) for key, item in reversed(node.items())
            )
        elif isinstance(node, list):
            waiting.extend((f"{path}[]", item) for item in reversed(node))
        else:
            yield path, node if isinstance(node, str) else json.dumps(node)


def _count_value(counters: dict[str, Counter[str]], name: str, value: str) -> None:
    if name not in counters and len(counters) >= MAX_FIELDS:
        return
    counts = counters.setdefault(name, Counter())
    if len(counts) <= MAX_TRACKED_VALUES:
        counts[value[:MAX_VALUE_CHARACTERS]] += 1


def _is_label(counts: Counter[str]) -> bool:
    """Whether values repeat as those of a label do: free text has nearly as many values as examples."""
    return len(counts) <= MAX_TRACKED_VALUES and len(counts) <= max(
        MAX_VALUES_PER_FIELD, counts.total() // 10
    )


def _shown(counts: Mapping[str, int]) -> dict[str, int]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    num_rest = sum(num for _, num in ordered[MAX_VALUES_PER_FIELD:])
    return dict(ordered[:MAX_VALUES_PER_FIELD]) | ({OTHER_VALUES: num_rest} if num_rest else {})
