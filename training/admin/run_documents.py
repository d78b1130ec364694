"""The documents of a training run as a page shows them; every text in them was written by a model or a user.

The documents come from the run's own process, but of any version of it: what has not the expected form is
left out, and never breaks the page.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.safestring import SafeString

from registry.visible_text import visible_text
from training.admin.curves import Chart, Point, draw_chart

MAX_SHOWN_ROWS: Final = 60
"""Decoded examples on one page."""
MAX_SHOWN_CHARACTERS: Final = 4000
"""Of one segment of a decoded example."""
_SPECIAL_TOKEN: Final = re.compile(
    r"(<\|[^|<>\s]{1,40}\|>|</?s>|<(?:bos|eos|pad|unk|start_of_turn|end_of_turn)>)"
)
_Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A stretch of text, escaped: trained or not, a special token of the template or not."""

    html: SafeString
    is_trained: bool
    is_special: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedRow:
    """One example as the model sees it."""

    example_id: str
    num_tokens: Any
    num_trained_tokens: Any
    was_cut: bool
    parts: tuple[TextPart, ...]


def preflight_context(document: _Json | None) -> dict[str, Any] | None:
    """What the template `_preflight.html` shows; None without a document."""
    if document is None:
        return None
    overfit = document.get("overfit")
    return {
        "passed": document.get("passed") is True,
        "checks": [check | {"row": check.get("row") or ""} for check in _objects(document.get("checks"))],
        "batches": list(_decoded_batches(document.get("batches"))),
        "overfit": overfit if isinstance(overfit, Mapping) else None,
        "overfit_charts": [chart for chart in [_overfit_chart(overfit)] if chart is not None],
        "first_step": _plain_items(document.get("first_step")),
    }


def not_finite_context(document: _Json | None) -> dict[str, Any] | None:
    """What the template `_not_finite.html` shows; None without a document."""
    if document is None:
        return None
    charts = [
        draw_chart("Loss before it", {"": _points(document.get("losses"))}),
        draw_chart("Gradient norm before it", {"": _points(document.get("gradient_norms"))}),
    ]
    return {
        "facts": _plain_items(
            {
                name: document.get(name)
                for name in ("what", "step", "first_bad_step", "checkpoint_step", "cause", "first_bad_module")
            }
        ),
        "message": document.get("message") or "",
        "treatment": document.get("treatment") or "",
        "examples": _objects(document.get("examples")),
        "modules": _objects(document.get("modules")),
        "charts": [chart for chart in charts if chart is not None],
    }


def mini_context(document: _Json | None) -> dict[str, Any] | None:
    """What the template `_mini.html` shows; None without a document."""
    if document is None:
        return None
    return {
        "passed": document.get("passed") is True,
        "checks": _objects(document.get("checks")),
        "samples": _objects(document.get("samples")),
    }


def mark_special_tokens(text: str, *, is_trained: bool) -> tuple[TextPart, ...]:
    """A text split at the special tokens of chat templates, every part escaped and cut."""
    shown = text[:MAX_SHOWN_CHARACTERS]
    # With one group in the expression every second piece is a special token.
    pieces = [(piece, index % 2 == 1) for index, piece in enumerate(_SPECIAL_TOKEN.split(shown)) if piece]
    if len(text) > MAX_SHOWN_CHARACTERS:
        pieces.append((f"… {len(text) - MAX_SHOWN_CHARACTERS} more characters", False))
    return tuple(
        TextPart(html=visible_text(piece), is_trained=is_trained, is_special=is_special)
        for piece, is_special in pieces
    )


def _decoded_batches(batches: Any) -> Iterator[list[DecodedRow]]:
    num_left = MAX_SHOWN_ROWS
    for batch in _objects(batches):
        rows = [_decode_row(row) for row in _objects(batch.get("rows"))[:num_left]]
        num_left -= len(rows)
        if rows:
            yield rows


def _decode_row(row: _Json) -> DecodedRow:
    parts: list[TextPart] = []
    for segment in _objects(row.get("segments")):
        text = segment.get("text")
        if isinstance(text, str):
            parts += mark_special_tokens(text, is_trained=segment.get("trained") is True)
    return DecodedRow(
        example_id=str(row.get("example_id", "")),
        num_tokens=row.get("num_tokens"),
        num_trained_tokens=row.get("num_trained_tokens"),
        was_cut=row.get("was_cut") is True,
        parts=tuple(parts),
    )


def _overfit_chart(overfit: Any) -> Chart | None:
    losses = overfit.get("losses") if isinstance(overfit, Mapping) else None
    if not isinstance(losses, list):
        return None
    points = [(step, float(loss)) for step, loss in enumerate(losses, start=1) if _is_number(loss)]
    return draw_chart("Loss on the few examples", {"": points})


def _points(pairs: Any) -> list[Point]:
    """(step, value) pairs without those whose value was not finite."""
    if not isinstance(pairs, list):
        return []
    return [
        (int(pair[0]), float(pair[1]))
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and _is_number(pair[0]) and _is_number(pair[1])
    ]


def _plain_items(values: Any) -> list[tuple[str, str]]:
    """Names and values of an object, without what is unknown; lists and objects in it are left out."""
    if not isinstance(values, Mapping):
        return []
    return [
        (str(name).replace("_", " "), _plain_text(str(name), value))
        for name, value in values.items()
        if value is not None and not isinstance(value, Mapping | list)
    ]


def _plain_text(name: str, value: Any) -> str:
    """A value for people: bytes in MB, whole numbers in groups of three, others with three digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if "bytes" in name:
        return f"{value / 1e6:,.1f} MB"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _objects(values: Any) -> Sequence[dict[str, Any]]:
    return [dict(value) for value in values if isinstance(value, Mapping)] if isinstance(values, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
