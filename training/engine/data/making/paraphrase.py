"""Rewording composed inputs by a model, under guard: the answer must still follow from the new words.

A rewording is taken only when every label-bearing text is still there, letter by letter, when it brings in no
label-bearing text of another label value, when its length is in range, and when it differs both from its
original and from every other input. Otherwise the original stays, and the reason is counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from training.engine.data.examples import ChatMessage
from training.engine.data.making.acceptance import AnswerRules, find_output_faults
from training.engine.data.making.composing import ComposedText
from training.engine.data.making.distinct import find_distinct
from training.engine.data.making.generator import Generated, Prompt, TextGenerator, generate_texts
from training.engine.data.making.stock_phrases import find_first_part, is_known_opening
from training.engine.data.making.structured_answers import to_compact_json
from training.engine.data.making.template_set import TemplateSet
from training.engine.data.making.template_settings import TemplateSettings
from training.engine.data.making.wordings import count_phrase
from training.engine.data.shingles import jaccard, make_shingles, normalise

MAX_SHOWN = 10
MAX_SHOWN_CHARACTERS = 400

_QUOTES: Final = (('"', '"'), ("\u201c", "\u201d"), ("\u300c", "\u300d"))
_RULES: Final = AnswerRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParaphraseReport:
    """What rewording did.

    Attributes:
        num_asked: Inputs that the model was asked to reword.
        num_accepted: Of these, those that were taken.
        refusals: The others by the first reason: ``empty``, ``unfinished``, ``template-residue``,
            ``unstorable-text``, ``refusal``, ``slot-value-lost``, ``foreign-label-word``, ``too-short``,
            ``too-long``, ``too-similar`` (to its original), ``near-duplicate`` (of another input).
        shown: A few originals with their rewordings and what became of them, cut to 400 characters each.
    """

    num_asked: int
    num_accepted: int
    refusals: Mapping[str, int]
    shown: tuple[Mapping[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            "num_asked": self.num_asked,
            "num_accepted": self.num_accepted,
            "refusals": dict(self.refusals),
            "shown": [dict(item) for item in self.shown],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignWords:
    """The label-bearing texts of a template set, to find those that a rewording must not bring in."""

    words: tuple[tuple[str, Mapping[str, str]], ...]

    @classmethod
    def of(cls, template_set: TemplateSet) -> "ForeignWords":
        """Collect the texts of all values and templates that state labels."""
        wordings = [value for values in template_set.slots.values() for value in values]
        wordings += [template.wording for template in template_set.templates]
        words = {
            (kept.casefold(), to_compact_json(dict(wording.labels))): (kept.casefold(), wording.labels)
            for wording in wordings
            if wording.labels
            for kept in wording.kept_texts
        }
        return cls(words=tuple(words.values()))

    def find(self, composed: ComposedText, text: str) -> str:
        """Return a text that states another value of a label of the input, and stands in its rewording but
        not in itself; "" when there is none.
        """
        original, rewording = composed.text.casefold(), text.casefold()
        for word, labels in self.words:
            contradicts = any(composed.labels.get(name) != value for name, value in labels.items())
            if contradicts and count_phrase(rewording, word) and not count_phrase(original, word):
                return word
        return ""


def paraphrase_texts(
    texts: Sequence[ComposedText],
    places: Sequence[int],
    *,
    template_set: TemplateSet,
    settings: TemplateSettings,
    generator: TextGenerator,
) -> tuple[dict[int, ComposedText], ParaphraseReport]:
    """Reword some of the inputs, all in one call of the model.

    Args:
        texts: All inputs; no two are similar.
        places: Which of them to reword, ascending.
        template_set: Whose label-bearing words are guarded.
        settings: Instructions and limits.
        generator: The model.

    Returns:
        The rewordings that were taken by place, and the report. The inputs together with the rewordings again
        hold no two that are similar.

    Raises:
        GenerationFailed: the model left prompts out.
    """
    prompts = [_build_prompt(texts[place], number, settings) for number, place in enumerate(places)]
    outputs = generate_texts(generator, prompts, max_tokens=settings.paraphrase_max_tokens)
    proposals = [_unwrap(output) for output in outputs]
    foreign = ForeignWords.of(template_set)
    reasons = [
        find_refusal(texts[place], proposal, foreign=foreign, settings=settings)
        for place, proposal in zip(places, proposals, strict=True)
    ]
    _refuse_near_duplicates(texts, proposals, reasons, settings.max_similarity)
    outcomes = list(zip(places, proposals, reasons, strict=True))
    accepted = {
        place: replace(texts[place], text=proposal.text) for place, proposal, reason in outcomes if not reason
    }
    refusals = Counter(reason for reason in reasons if reason)
    shown = [
        {
            "before": _cut(texts[place].text),
            "after": _cut(proposal.text),
            "outcome": reason or "accepted",
        }
        for place, proposal, reason in outcomes[:MAX_SHOWN]
    ]
    report = ParaphraseReport(
        num_asked=len(places),
        num_accepted=len(accepted),
        refusals=dict(refusals.most_common()),
        shown=tuple(shown),
    )
    return accepted, report


def find_refusal(
    composed: ComposedText, proposal: Generated, *, foreign: ForeignWords, settings: TemplateSettings
) -> str:
    """Return the first reason not to take a rewording, looking at it and its original only; "" for none."""
    faults = find_output_faults(proposal, _RULES)
    if faults:
        return faults[0]
    if composed.find_lost(proposal.text):
        return "slot-value-lost"
    if foreign.find(composed, proposal.text):
        return "foreign-label-word"
    if len(proposal.text) < settings.min_length_fraction * len(composed.text):
        return "too-short"
    if len(proposal.text) > settings.max_length_fraction * len(composed.text):
        return "too-long"
    similarity = jaccard(_shingles(composed.text), _shingles(proposal.text))
    return "too-similar" if similarity >= settings.paraphrase_max_similarity else ""


def _build_prompt(composed: ComposedText, number: int, settings: TemplateSettings) -> Prompt:
    instructions = settings.paraphrase_instructions
    kept = ", ".join(to_compact_json(text) for text in composed.kept) or "(none)"
    system = instructions[number % len(instructions)].replace("{keep}", kept)
    return (ChatMessage("system", system), ChatMessage("user", composed.text))


def _unwrap(output: Generated) -> Generated:
    """Take an announcement and a pair of quotes off, which models put around what they reword."""
    text = _strip_announcement(output.text.strip())
    for left, right in _QUOTES:
        inner = text[1:-1]
        if len(text) > 2 and text[0] == left and text[-1] == right and not {left, right} & set(inner):
            text = inner.strip()
    return replace(output, text=text)


def _strip_announcement(text: str) -> str:
    """Take "Here is the new message:" off, and a "Sure," before it, but no "Okay," of the message itself."""
    part = find_first_part(text)
    if part is not None and is_known_opening(part) and not part.is_announcement:
        part = find_first_part(part.rest)
    return part.rest if part is not None and part.is_announcement else text


def _refuse_near_duplicates(
    texts: Sequence[ComposedText], proposals: Sequence[Generated], reasons: list[str], threshold: float
) -> None:
    """Refuse proposals that are similar to any original or to one that was taken before.

    Originals count even where they were replaced: what is left is distinct in any case.
    """
    numbers = [number for number, reason in enumerate(reasons) if not reason]
    originals = [text.text for text in texts]
    is_distinct = find_distinct(
        originals + [proposals[number].text for number in numbers], threshold=threshold
    )[len(originals) :]
    for number, fits in zip(numbers, is_distinct, strict=True):
        if not fits:
            reasons[number] = "near-duplicate"


def _shingles(text: str) -> frozenset[str]:
    return make_shingles(normalise(text))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 1] + "…"
