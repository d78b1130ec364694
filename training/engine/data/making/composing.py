"""Composing one text from a template and labels, with typing habits where no label is hurt."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from training.engine.data.making.label_space import LabelSpace
from training.engine.data.making.template_set import Labels, NoiseSettings, Wording
from training.engine.data.making.wordings import count_phrase

_PUNCTUATION: Final = re.compile(r"[.,!](?=\s)")
_LONG_WORD: Final = re.compile(r"\b[A-Za-z]{6,}\b")
"""Two inner letters of a word of six or more may be swapped: people still read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedText:
    """An input that was composed, and what it states.

    Attributes:
        template_id: Of the template.
        text: The input.
        kept: Each label-bearing text, as it stands there, with the number of places that must stay.
        labels: Those that texts state.
        answer: The answer that follows, compact JSON.
    """

    template_id: str
    text: str
    kept: Mapping[str, int]
    labels: Labels
    answer: str

    def find_lost(self, text: str) -> tuple[str, ...]:
        """Return the label-bearing texts that another wording of the input no longer holds, letter by letter
        and often enough.
        """
        return tuple(kept for kept, num in self.kept.items() if not self._holds(text, kept, num))

    def _holds(self, text: str, kept: str, num: int) -> bool:
        # Where a slot stands against other letters ("{amount}EUR") its text is no phrase of its own.
        num_here = count_phrase(self.text, kept)
        return count_phrase(text, kept) >= min(num, num_here) if num_here else kept in text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A stretch of the text; ``slot`` is whose value it is from, "" for the template."""

    text: str
    slot: str
    is_kept: bool
    is_exact: bool


def compose_text(space: LabelSpace, labels: Labels, generator: random.Random) -> ComposedText:
    """Compose one input that states labels.

    Args:
        space: Of the template set.
        labels: A combination that gives an example (``LabelSpace.find_problem`` says "").
        generator: Source of every choice.
    """
    template = generator.choice(space.templates_for(labels))
    chosen: dict[str, Wording] = {}
    _choose(space, template.wording, labels, generator, chosen)
    parts = _join(_expand(template.wording, "", chosen))
    # A slot that stands there twice says the same twice; once is enough.
    kept = Counter(
        text for _, text in dict.fromkeys((part.slot, part.text) for part in parts if part.is_kept)
    )
    parts = _add_noise(parts, space.template_set.noise, generator)
    return ComposedText(
        template_id=template.template_id,
        text="".join(part.text for part in parts).strip(),
        kept=dict(kept),
        labels=labels,
        answer=space.template_set.answer_of(space.derive(labels)),
    )


def _choose(
    space: LabelSpace,
    wording: Wording,
    labels: Labels,
    generator: random.Random,
    chosen: dict[str, Wording],
) -> None:
    """Choose one value for every slot, whatever the number of its places."""
    for name in wording.slots:
        if name not in chosen:
            chosen[name] = generator.choice(space.options(name, labels))
            _choose(space, chosen[name], labels, generator, chosen)


def _expand(wording: Wording, slot: str, chosen: Mapping[str, Wording]) -> Iterator[_Part]:
    for piece in wording.pieces:
        if not piece.slot:
            yield _Part(text=piece.text, slot=slot, is_kept=piece.is_kept, is_exact=wording.is_label_text)
            continue
        inner = list(_expand(chosen[piece.slot], piece.slot, chosen))
        # A text that is itself the value of a label stays as the answer has it.
        if piece.is_capitalised and inner and not inner[0].is_exact:
            inner[0] = replace(inner[0], text=inner[0].text[:1].upper() + inner[0].text[1:])
        yield from inner


def _join(parts: Iterable[_Part]) -> list[_Part]:
    """Leave out the spaces that an empty value leaves behind."""
    joined: list[_Part] = []
    for part in parts:
        if part.text.startswith("\n") and joined and not joined[-1].is_kept:
            last = joined.pop()
            joined += [replace(last, text=text)] if (text := last.text.rstrip(" ")) else []
        ends_in_space = not joined or joined[-1].text[-1].isspace()
        text = part.text.lstrip(" ") if ends_in_space and not part.is_kept else part.text
        if text:
            joined.append(replace(part, text=text))
    return joined


def _add_noise(parts: list[_Part], noise: NoiseSettings, generator: random.Random) -> list[_Part]:
    # Every draw is made whatever the settings are, so that one habit does not change the others.
    lower, drop, swap = (generator.random() for _ in range(3))
    if lower < noise.lower_case_fraction:
        parts = [part if part.is_kept else replace(part, text=part.text.lower()) for part in parts]
    if drop < noise.drop_punctuation_fraction:
        parts = _drop_punctuation(parts)
    return _swap_letters(parts, generator) if swap < noise.swap_letters_fraction else parts


def _drop_punctuation(parts: Sequence[_Part]) -> list[_Part]:
    following = [part.text[0] for part in parts[1:]] + [" "]
    return [
        part if part.is_kept else replace(part, text=_PUNCTUATION.sub("", part.text + after)[: -len(after)])
        for part, after in zip(parts, following, strict=True)
    ]


def _swap_letters(parts: list[_Part], generator: random.Random) -> list[_Part]:
    words = [
        (number, word)
        for number, part in enumerate(parts)
        if not part.is_kept
        for word in _LONG_WORD.finditer(part.text)
    ]
    if not words:
        return parts
    number, word = generator.choice(words)
    text = parts[number].text
    at = word.start() + generator.randint(1, len(word[0]) - 3)
    swapped = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return [replace(part, text=swapped) if place == number else part for place, part in enumerate(parts)]
