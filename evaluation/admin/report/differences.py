"""Marks how an output differs from what it is compared with: field by field for JSON objects, else token by
token.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.safestring import SafeString

from evaluation.engine.json_text import JsonTextError, json_equal, parse_json
from evaluation.engine.scoring.json_output import strip_outer_fence
from registry.marked_text import mark_tokens
from registry.visible_text import visible_text

EMPTY: Final = SafeString("")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCell:
    """One field of an output.

    Attributes:
        name: Key, or dotted path.
        value: The value as marked HTML; empty when missing.
        mark: "same", "different", "missing" (the output lacks it), "extra" (only the output has it) or
            "plain" (there is nothing to compare with).
    """

    name: SafeString
    value: SafeString
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An output made ready for the page: either `fields` or `text` is filled."""

    fields: tuple[FieldCell, ...] = ()
    text: SafeString = EMPTY
    is_same: bool = False


def compare_outputs(
    output: str, anchor: str | None, scored_fields: Mapping[str, Mapping[str, Any]] | None = None
) -> Comparison:
    """The output with marks where it differs.

    Args:
        output: What the model wrote.
        anchor: What it is compared with (the reference, or another form's output); None without any.
        scored_fields: The scorer's findings by field. They decide over right and wrong where they speak,
            since the suite's normalisers may take "Urgent" and "urgent" for the same.
    """
    value, expected = _object_of(output), _object_of(anchor or "")
    if value is not None and (anchor is None or expected is not None):
        cells = _field_cells(value, expected, scored_fields or {})
        return Comparison(fields=cells, is_same=expected is not None and json_equal(value, expected))
    if anchor is None:
        return Comparison(text=visible_text(output))
    return Comparison(text=mark_tokens(output, anchor), is_same=output.strip() == anchor.strip())


def _object_of(text: str) -> dict[str, Any] | None:
    try:
        value = parse_json(strip_outer_fence(text))
    except JsonTextError:
        return None
    return value if isinstance(value, dict) else None


def _field_cells(
    value: Mapping[str, Any], expected: Mapping[str, Any] | None, scored: Mapping[str, Mapping[str, Any]]
) -> tuple[FieldCell, ...]:
    names = list(expected or {}) + [name for name in value if name not in (expected or {})]
    return tuple(_field_cell(name, value, expected, scored.get(name)) for name in names)


def _field_cell(
    name: str,
    value: Mapping[str, Any],
    expected: Mapping[str, Any] | None,
    scored: Mapping[str, Any] | None,
) -> FieldCell:
    label = visible_text(name)
    if expected is None:
        return FieldCell(name=label, value=visible_text(_shown(value[name])), mark="plain")
    if name not in value:
        return FieldCell(name=label, value=SafeString(""), mark="missing")
    if name not in expected:
        return FieldCell(name=label, value=visible_text(_shown(value[name])), mark="extra")
    is_same = json_equal(value[name], expected[name])
    if scored is not None and isinstance(scored.get("correct"), bool):
        is_same = scored["correct"]
    if is_same:
        return FieldCell(name=label, value=visible_text(_shown(value[name])), mark="same")
    marked = mark_tokens(_shown(value[name]), _shown(expected[name]))
    return FieldCell(name=label, value=marked, mark="different")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
