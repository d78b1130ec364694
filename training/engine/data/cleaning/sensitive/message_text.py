"""A message as text to search and to edit: as it stands, or, when it is JSON, value by value.

An edited JSON text stays valid JSON: only strings are edited inside, and only numbers are replaced by
strings. All other bytes stay as they were.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from training.engine.data.cleaning.sensitive.folding import BARRIER

_STRING_OR_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"|-?[0-9][0-9.eE+-]*+', re.DOTALL)
_KEY_ENDS = re.compile(r"[ \t\n\r]*+:")
_MAX_CONTEXT = 40
"""Characters of a key that count as the words in front of its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A place in the view and what stands there afterwards."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True, slots=True)
class _Leaf:
    view_start: int
    view_end: int
    raw_start: int
    raw_end: int
    is_number: bool


class MessageText:
    """One message.

    Attributes:
        view: What rules search. For JSON it holds each key and each value with its key in front, so that
            ``{"护照号": "E…"}`` reads as ``护照号: E…``.
    """

    def __init__(self, content: str) -> None:
        """Read a message."""
        self._content = content
        self._is_json = _is_json(content)
        self.view, self._leaves = _read_leaves(content) if self._is_json else (content, [])
        self._starts = [leaf.view_start for leaf in self._leaves]

    def is_editable(self, start: int, end: int) -> bool:
        """Return whether a place of the view is content, and not the repeated key in front of a value."""
        return not self._is_json or self._find_leaf(start, end) is not None

    def is_json_number(self, start: int, end: int) -> bool:
        """Return whether a place lies in a number of a JSON text."""
        leaf = self._find_leaf(start, end)
        return leaf is not None and leaf.is_number

    def edit(self, edits: Sequence[Edit]) -> str:
        """Return the message with places replaced; they are editable, in order, and do not overlap."""
        if not self._is_json:
            return _splice(self.view, 0, len(self.view), edits)
        parts, place = [], 0
        for leaf, own in self._group(edits):
            parts.append(self._content[place : leaf.raw_start])
            raw = self._content[leaf.raw_start : leaf.raw_end]
            if leaf.is_number:
                parts.append(json.dumps(own[0].replacement, ensure_ascii=False))
            else:
                text = _splice(self.view, leaf.view_start, leaf.view_end, own)
                parts.append(json.dumps(text, ensure_ascii=raw.isascii()))
            place = leaf.raw_end
        return "".join([*parts, self._content[place:]])

    def _group(self, edits: Sequence[Edit]) -> list[tuple[_Leaf, list[Edit]]]:
        grouped: list[tuple[_Leaf, list[Edit]]] = []
        for edit in edits:
            leaf = self._find_leaf(edit.start, edit.end)
            if leaf is None:
                raise ValueError("an edit outside of the values")
            if not grouped or grouped[-1][0] is not leaf:
                grouped.append((leaf, []))
            grouped[-1][1].append(edit)
        return grouped

    def _find_leaf(self, start: int, end: int) -> _Leaf | None:
        number = bisect_right(self._starts, start) - 1
        if number < 0 or end > self._leaves[number].view_end:
            return None
        return self._leaves[number]


def _is_json(content: str) -> bool:
    if content.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _read_leaves(content: str) -> tuple[str, list[_Leaf]]:
    """Return the view of a valid JSON text and its keys, strings and numbers in order."""
    parts: list[str] = []
    leaves: list[_Leaf] = []
    length, key = 0, ""
    for token in _STRING_OR_NUMBER.finditer(content):
        raw = token.group()
        is_number = raw[0] != '"'
        # Without a backslash there is nothing to decode: the text is known to be valid JSON.
        text = raw if is_number else json.loads(raw) if "\\" in raw else raw[1:-1]
        is_key = _KEY_ENDS.match(content, token.end()) is not None
        lead = BARRIER if is_key else f"{BARRIER}{key}: "
        parts += (lead, text)
        length += len(lead)
        leaves.append(_Leaf(length, length + len(text), token.start(), token.end(), is_number))
        length += len(text)
        key = text[-_MAX_CONTEXT:] if is_key else key
    return "".join(parts), leaves


def _splice(text: str, start: int, end: int, edits: Sequence[Edit]) -> str:
    parts: list[str] = []
    place = start
    for edit in edits:
        parts += (text[place : edit.start], edit.replacement)
        place = edit.end
    return "".join([*parts, text[place:end]])
