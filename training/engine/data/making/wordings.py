"""Reading one text with slots into its pieces."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from registry.artifacts.findings import shown
from training.engine.data.making.structured_answers import to_compact_json
from training.engine.data.making.template_set import Labels, Piece, Wording
from training.engine.errors import Fault

_BRACES: Final = re.compile(r"\{\{|\}\}|\{([A-Za-z][A-Za-z0-9_]*)\}|[{}]")
_WORD_CHARACTER: Final = re.compile(r"[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_EDGES: Final = " \t\r\n.,;:!?\u3002\uff0c\uff1b\uff1a\uff01\uff1f"
"""Space and punctuation around a labelled stretch bear no label."""


def read_wording(
    text: str,
    *,
    labels: Labels,
    keep: Sequence[str] | None,
    label: str | None,
    where: str,
    faults: list[Fault],
) -> Wording:
    """Split a text into literal pieces and slots.

    Args:
        text: With ``{slot}``, ``{Slot}``, ``{{`` and ``}}``.
        labels: What it states.
        keep: Words that bear the labels; None means all words of a text that states any.
        label: A label whose value is the text itself; None for none.
        where: Its place.
        faults: Takes ``stray-brace``, ``slot-in-label-text``, ``label-set-twice`` and ``keep-not-in-text``.
    """
    pieces = list(_split(text, where, faults))
    if label is not None:
        if any(piece.slot for piece in pieces):
            message = "its text is the value of a label and may hold no slots"
            faults.append(Fault(code="slot-in-label-text", message=message, where=where))
        if label in labels:
            message = f"the label {shown(label)!r} is the text itself and is set once more"
            faults.append(Fault(code="label-set-twice", message=message, where=where))
        literal = "".join(piece.text for piece in pieces).strip()
        kept = (Piece(text=literal, is_kept=True),) if literal else ()
        labels = {**labels, label: to_compact_json(literal)}
        return Wording(text=text, pieces=kept, labels=labels, is_label_text=True, where=where)
    if keep is not None:
        pieces = list(_mark(pieces, keep))
        lost = [word for word in keep if not any(count_phrase(piece.text, word) for piece in pieces)]
        for word in lost:
            message = f"keep names {shown(word)!r}, which is not in the text beside its slots"
            faults.append(Fault(code="keep-not-in-text", message=message, where=where))
    elif labels:
        pieces = [part for piece in pieces for part in _mark_all(piece)]
    return Wording(text=text, pieces=tuple(pieces), labels=labels, where=where)


def phrase_pattern(phrase: str) -> str:
    """Return the pattern of a phrase that stands by itself: "log" is not in "blog", nor "25" in "250".

    Chinese, Japanese and Korean write no spaces, so there a phrase may stand within other characters.
    """
    first, last = (_WORD_CHARACTER.match(phrase[place]) for place in (0, -1))
    before = f"(?<!{_WORD_CHARACTER.pattern})" if first else ""
    after = f"(?!{_WORD_CHARACTER.pattern})" if last else ""
    return f"{before}{re.escape(phrase)}{after}"


def count_phrase(text: str, phrase: str) -> int:
    """Return how often a phrase stands in a text, letter by letter, as ``phrase_pattern`` says."""
    if phrase not in text:
        return 0
    return len(re.findall(phrase_pattern(phrase), text))


def _split(text: str, where: str, faults: list[Fault]) -> Iterator[Piece]:
    literal, end = "", 0
    for match in _BRACES.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        if match[1]:
            if literal:
                yield Piece(text=literal)
            name = match[1]
            yield Piece(slot=name[0].lower() + name[1:], is_capitalised=name[0].isupper())
            literal = ""
            continue
        literal += match[0][0]
        if len(match[0]) == 1:
            message = f"a single {match[0]} is no slot"
            remedy = "Write {{ or }} for a brace; a slot is {name}."
            faults.append(Fault(code="stray-brace", message=message, where=where, remedy=remedy))
    literal += text[end:]
    if literal:
        yield Piece(text=literal)


def _mark(pieces: Sequence[Piece], keep: Sequence[str]) -> Iterator[Piece]:
    """Cut the words to keep out of the literal pieces."""
    longest_first = sorted(set(keep), key=lambda word: (-len(word), word))
    pattern = re.compile(f"({'|'.join(map(phrase_pattern, longest_first))})") if longest_first else None
    for piece in pieces:
        if piece.slot or pattern is None:
            yield piece
            continue
        for number, part in enumerate(pattern.split(piece.text)):
            if part:
                yield Piece(text=part, is_kept=number % 2 == 1)


def _mark_all(piece: Piece) -> Iterator[Piece]:
    core = piece.text.strip(_EDGES)
    if piece.slot or not any(map(str.isalnum, core)):
        yield piece
        return
    start = piece.text.index(core)
    parts = (piece.text[:start], core, piece.text[start + len(core) :])
    yield from (Piece(text=part, is_kept=number == 1) for number, part in enumerate(parts) if part)
