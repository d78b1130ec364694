"""One example: what is sensitive in it, and the example without it.

The same value gets the same placeholder in every message of the example, so that an answer that repeats a
part of the input still does so afterwards.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from training.engine.data.cleaning.sensitive.folding import fold, is_bounded
from training.engine.data.cleaning.sensitive.kinds import LABELS, SensitiveSpan, mask, resolve_overlaps
from training.engine.data.cleaning.sensitive.message_text import Edit, MessageText
from training.engine.data.cleaning.sensitive.scan import scan
from training.engine.data.cleaning.sensitive.settings import DROP, REDACT, ScreenSettings
from training.engine.data.cleaning.step import Outcome
from training.engine.data.examples import Example

_MAX_DETAILS = 5
_MAX_SAME_START = 16
_RUN = re.compile(r"[A-Za-z0-9]+")
_EXISTING = re.compile(r"\[([A-Z_]{2,20})_([0-9]{1,6})\]")
_MAX_FURTHER_PASSES = 8
# The origin names files and rows of the source; it is no content of the example.
_FIELDS_NOT_SEARCHED = frozenset(("origin",))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSpan:
    """A finding and the message that holds it."""

    message_index: int
    span: SensitiveSpan
    masked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """What was found in one example.

    Attributes:
        found: All findings in order of place, reserved ones not among them when they are ignored.
        num_reserved: Findings that were ignored because they are documented examples.
        in_fields: Kind and masked form of what other keys of the line hold.
        outcome: What becomes of the example.
    """

    found: tuple[PlacedSpan, ...]
    num_reserved: int
    in_fields: tuple[tuple[str, str], ...]
    outcome: Outcome


def screen_example(
    example: Example, settings: ScreenSettings, literals: Mapping[int, Mapping[str, str]] | None = None
) -> Screening:
    """Search an example and apply the actions of its findings.

    Args:
        example: Any example.
        settings: Kinds and actions.
        literals: Further findings, of a model or a person: by message index, the text that stands there and
            its kind. A text that does not occur in the message finds nothing.
    """
    screening = _screen_once(example, settings, literals or {})
    for _ in range(_MAX_FURTHER_PASSES):
        changed = screening.outcome.example
        if changed is None or changed == example:
            break
        # A placeholder ends what ran on into its neighbour: values written without a gap are seen only now.
        again = _screen_once(changed, settings, {}).outcome
        if again.example is None or again.example == changed:
            break
        reasons = (*screening.outcome.reasons, *again.reasons)
        outcome = Outcome.changed(again.example, *reasons, detail=screening.outcome.detail)
        screening = replace(screening, outcome=outcome)
    return screening


def _screen_once(
    example: Example, settings: ScreenSettings, literals: Mapping[int, Mapping[str, str]]
) -> Screening:
    texts = [MessageText(message.content) for message in example.messages]
    found, num_reserved = _find(texts, settings, literals)
    in_fields = tuple(_find_in_fields(example, settings)) if settings.screen_fields else ()
    outcome = _act(example, texts, found, in_fields, settings)
    return Screening(found=tuple(found), num_reserved=num_reserved, in_fields=in_fields, outcome=outcome)


def mask_example(
    example: Example, settings: ScreenSettings, literals: Mapping[int, Mapping[str, str]] | None = None
) -> Example:
    """Return the example with a placeholder for every finding, whatever its action, for reports; arguments as
    of ``screen_example``.
    """
    texts = [MessageText(message.content) for message in example.messages]
    found, _ = _find(texts, settings, literals or {})
    return _redact(example, texts, found).with_fields(**mask_strings(example.fields, settings))


def mask_text(text: str, settings: ScreenSettings) -> str:
    """Return a text with a placeholder for every finding, for reports."""
    spans = [span for span in _scan(text, settings) if not (span.is_reserved and settings.ignore_reserved)]
    parts: list[str] = []
    place = 0
    for span in spans:
        parts += (text[place : span.start], f"[{LABELS[span.kind]}]")
        place = span.end
    return "".join([*parts, text[place:]])


def describe(found: Sequence[PlacedSpan]) -> str:
    """Return kinds and masked forms of the first few findings, fit for reports."""
    listed = "; ".join(f"{item.span.kind} {item.masked}" for item in found[:_MAX_DETAILS])
    return listed if len(found) <= _MAX_DETAILS else f"{listed}; and {len(found) - _MAX_DETAILS} more"


def _scan(text: str, settings: ScreenSettings) -> tuple[SensitiveSpan, ...]:
    return scan(text, kinds=settings.kinds, regions=settings.regions)


def _find(
    texts: Sequence[MessageText], settings: ScreenSettings, literals: Mapping[int, Mapping[str, str]]
) -> tuple[list[PlacedSpan], int]:
    per_message = [_scan(text.view, settings) for text in texts]
    surfaces: dict[str, SensitiveSpan] = {}
    for text, spans in zip(texts, per_message, strict=True):
        for span in spans:
            if not (span.is_reserved and settings.ignore_reserved):
                surfaces.setdefault(fold(text.view[span.start : span.end]), span)
    for by_text in literals.values():
        for literal, kind in by_text.items():
            surface = fold(literal)
            surfaces.setdefault(surface, SensitiveSpan(kind=kind, start=0, end=0, value=surface.casefold()))
    if not any(per_message) and not surfaces:
        return [], 0
    known = _KnownValues(surfaces)
    found, num_reserved = [], 0
    for index, (text, spans) in enumerate(zip(texts, per_message, strict=True)):
        for span in resolve_overlaps([*spans, *known.find(fold(text.view))]):
            if span.is_reserved and settings.ignore_reserved:
                num_reserved += 1
            elif text.is_editable(span.start, span.end):
                masked = mask(text.view[span.start : span.end])
                found.append(PlacedSpan(message_index=index, span=span, masked=masked))
    return found, num_reserved


class _KnownValues:
    """Finds again what was found elsewhere in the example, where no word around it says what it is."""

    def __init__(self, surfaces: Mapping[str, SensitiveSpan]) -> None:
        self._by_run: defaultdict[str, list[tuple[int, str, SensitiveSpan]]] = defaultdict(list)
        self._others: list[tuple[str, SensitiveSpan]] = []
        for surface, span in surfaces.items():
            run = _RUN.search(surface)
            if run is None:
                self._others.append((surface, span))
            elif len(self._by_run[run.group()]) < _MAX_SAME_START:
                self._by_run[run.group()].append((run.start(), surface, span))

    def find(self, text: str) -> Iterator[SensitiveSpan]:
        for run in _RUN.finditer(text) if self._by_run else ():
            for lead, surface, span in self._by_run.get(run.group(), ()):
                start = run.start() - lead
                end = start + len(surface)
                if start >= 0 and text.startswith(surface, start) and is_bounded(text, start, end):
                    yield SensitiveSpan(kind=span.kind, start=start, end=end, value=span.value)
        for surface, span in self._others:
            start = text.find(surface)
            while start >= 0:
                end = start + len(surface)
                yield SensitiveSpan(kind=span.kind, start=start, end=end, value=span.value)
                start = text.find(surface, end)


def _find_in_fields(example: Example, settings: ScreenSettings) -> Iterator[tuple[str, str]]:
    for name, value in example.fields.items():
        if name in _FIELDS_NOT_SEARCHED:
            continue
        for text in _iterate_strings(value):
            for span in _scan(text, settings):
                if not (span.is_reserved and settings.ignore_reserved):
                    yield span.kind, mask(text[span.start : span.end])


def _iterate_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _iterate_strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_strings(item)


def mask_strings(value: Any, settings: ScreenSettings) -> Any:
    """Return a JSON value in which every text has a placeholder for every finding, for reports."""
    if isinstance(value, str):
        return mask_text(value, settings)
    if isinstance(value, Mapping):
        return {key: mask_strings(item, settings) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_strings(item, settings) for item in value]
    return value


def _act(
    example: Example,
    texts: Sequence[MessageText],
    found: Sequence[PlacedSpan],
    in_fields: Sequence[tuple[str, str]],
    settings: ScreenSettings,
) -> Outcome:
    if not found and not in_fields:
        return Outcome.kept(example)
    detail = describe(found)
    for item in found:
        if settings.get_action(item.span.kind) == DROP:
            return Outcome.dropped(f"{item.span.kind}-dropped", detail=detail)
    reasons, redacted = [], []
    for item in found:
        reason = _why_left(example, texts, item, settings)
        reasons.append(f"{item.span.kind}-{reason or 'redacted'}")
        if reason is None:
            redacted.append(item)
    reasons.extend(f"{kind}-in-fields" for kind, _ in in_fields)
    if not redacted:
        masked = "; ".join(f"{kind} {text}" for kind, text in in_fields[:_MAX_DETAILS])
        return Outcome.flagged(example, *reasons, detail=detail or masked)
    return Outcome.changed(_redact(example, texts, redacted), *reasons, detail=detail)


def _why_left(
    example: Example, texts: Sequence[MessageText], item: PlacedSpan, settings: ScreenSettings
) -> str | None:
    """Return why a finding is only flagged, None when it is redacted."""
    if settings.get_action(item.span.kind) != REDACT:
        return "flagged"
    # Serving sends the same system prompt: an example with another one would train for a prompt that never
    # comes.
    if example.messages[item.message_index].role == "system":
        return "in-system-prompt"
    text = texts[item.message_index]
    if text.is_json_number(item.span.start, item.span.end) and not settings.redact_json_numbers:
        return "in-json-number"
    return None


def _redact(example: Example, texts: Sequence[MessageText], found: Sequence[PlacedSpan]) -> Example:
    placeholders = _Placeholders(message.content for message in example.messages)
    edits: defaultdict[int, list[Edit]] = defaultdict(list)
    for item in found:
        replacement = placeholders.get(item.span)
        edits[item.message_index].append(
            Edit(start=item.span.start, end=item.span.end, replacement=replacement)
        )
    return example.with_contents({index: texts[index].edit(own) for index, own in edits.items()})


class _Placeholders:
    """Gives numbered placeholders; numbers that stand in the example already are not used again."""

    def __init__(self, contents: Iterable[str]) -> None:
        self._last: Counter[str] = Counter()
        self._given: dict[tuple[str, str], str] = {}
        for content in contents:
            for label, number in _EXISTING.findall(content):
                self._last[label] = max(self._last[label], int(number))

    def get(self, span: SensitiveSpan) -> str:
        label = LABELS[span.kind]
        key = (label, span.value)
        if key not in self._given:
            self._last[label] += 1
            self._given[key] = f"[{label}_{self._last[label]}]"
        return self._given[key]
