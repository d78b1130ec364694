"""A declared set of templates: what it is, as values. ``template_reading`` reads it from JSON.

A label's value is kept as its compact JSON text (``'"login"'``, ``1``, ``null``): texts compare and hash
without Python's 1 == True, and the answer is put together from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training.engine.data.making.structured_answers import AnswerSchema, to_compact_json

Labels = Mapping[str, str]
"""Name of a label to its value as compact JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of a wording: literal text, or a slot to be filled.

    Attributes:
        text: Literal text; "" for a slot.
        slot: Name of the slot; "" for literal text.
        is_kept: Whether literal text bears a label, so that no noise and no paraphrase may change it.
        is_capitalised: Whether the slot's text begins with a capital here.
    """

    text: str = ""
    slot: str = ""
    is_kept: bool = False
    is_capitalised: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A text with slots, and the labels that it states: a slot's value, or a template.

    Attributes:
        text: As it was written.
        pieces: Its parts in order; none for an empty text.
        labels: What it states by itself, without what its slots state.
        is_label_text: Whether the text itself is the value of its label; then it is never changed.
        where: Its place in the file.
    """

    text: str
    pieces: tuple[Piece, ...]
    labels: Labels = field(default_factory=dict)
    is_label_text: bool = False
    where: str = ""

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the slots in it, each once, in order."""
        return tuple(dict.fromkeys(piece.slot for piece in self.pieces if piece.slot))

    @property
    def kept_texts(self) -> tuple[str, ...]:
        """The literal texts that bear its labels, each once, in order."""
        return tuple(dict.fromkeys(piece.text for piece in self.pieces if piece.is_kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A sentence or message with slots.

    Attributes:
        template_id: Unique in its set.
        wording: Its text.
    """

    template_id: str
    wording: Wording


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRule:
    """Labels that follow from others. Rules are tried in order; for each label the first that fits decides.

    Attributes:
        when: For each label the values that fit; all labels must fit. Empty fits always.
        then: Labels that it sets, unless an earlier rule did.
        where: Its place in the file.
    """

    when: Mapping[str, tuple[str, ...]]
    then: Labels
    where: str = ""

    def fits(self, labels: Labels) -> bool:
        """Return whether the condition holds."""
        return all(labels.get(name) in values for name, values in self.when.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSettings:
    """Typing habits that are put into the parts of a text that bear no label.

    Attributes:
        lower_case_fraction: Part of the texts without capitals, 0-1.
        drop_punctuation_fraction: Part of the texts without full stops, commas and exclamation marks.
        swap_letters_fraction: Part of the texts with two inner letters of a long word swapped.
    """

    lower_case_fraction: float = 0.0
    drop_punctuation_fraction: float = 0.0
    swap_letters_fraction: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSet:
    """A checked set of templates.

    Attributes:
        name: Begins the ids of the examples.
        system_prompt: System message of every example; None for none.
        answer_fields: Labels that make up the answer, in order.
        slots: Values of each slot.
        templates: In order.
        rules: Labels that follow from others.
        excluded: Combinations of labels that do not occur: each holds values for some labels.
        noise: Typing habits.
        schema: What every answer must fulfil; None without one.
        sha256: Of the document.
    """

    name: str
    system_prompt: str | None
    answer_fields: tuple[str, ...]
    slots: Mapping[str, tuple[Wording, ...]]
    templates: tuple[Template, ...]
    rules: tuple[LabelRule, ...] = ()
    excluded: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    schema: AnswerSchema | None = None
    sha256: str = ""

    def domains(self) -> dict[str, tuple[str, ...]]:
        """Return the values of each label that texts state, in the order of their first mention."""
        found: dict[str, dict[str, None]] = {}
        wordings = [template.wording for template in self.templates]
        for wording in [value for values in self.slots.values() for value in values] + wordings:
            for name, value in wording.labels.items():
                found.setdefault(name, {})[value] = None
        return {name: tuple(values) for name, values in found.items()}

    def answer_of(self, labels: Labels) -> str:
        """Return the answer for labels that hold all answer fields: compact JSON in the fixed order."""
        members = [f"{to_compact_json(name)}:{labels[name]}" for name in self.answer_fields]
        return "{" + ",".join(members) + "}"


def excludes(condition: Mapping[str, tuple[str, ...]], labels: Mapping[str, Any]) -> bool:
    """Return whether all of a condition's labels have one of its values."""
    return all(labels.get(name) in values for name, values in condition.items())
