"""Examples from rules and templates, with rewording by a model on top (MISSION C5).

The answer follows from the labels that the composed text states, so it is right by construction as far as the
template set is right: ``reference_source`` is "rule". ``template_reading`` documents the form of a set.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from training.engine.data.examples import ChatMessage, Example
from training.engine.data.making.composing import ComposedText, compose_text
from training.engine.data.making.distinct import find_distinct
from training.engine.data.making.generator import TextGenerator
from training.engine.data.making.label_space import LabelSpace, draw_combinations
from training.engine.data.making.paraphrase import ParaphraseReport, paraphrase_texts
from training.engine.data.making.structured_answers import to_compact_json
from training.engine.data.making.template_set import Labels, TemplateSet
from training.engine.data.making.template_settings import TemplateSettings

MAX_LISTED_COMBINATIONS = 20
_MAX_ROUNDS: Final = 8
_TRIES_PER_EXAMPLE: Final = 2
"""Tries of one round are at most this many times the examples that are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateReport:
    """What a run of templates gave.

    Attributes:
        num_requested: Examples that were asked for.
        num_examples: Examples that were made.
        num_missing: The rest: for their labels no text was found that differs enough from the others.
        missing: Combinations of labels that lack examples, with how many, the most lacking first, at most 20.
        num_refused_similar: Texts that were composed and put aside because of their similarity.
        num_combinations: Different combinations of labels among the examples.
        labels: For each label, derived ones included, how many examples have each value.
        templates: How many examples each template gave.
        paraphrase: What rewording did; None when no model was given.
    """

    num_requested: int
    num_examples: int
    num_missing: int
    missing: tuple[Mapping[str, Any], ...]
    num_refused_similar: int
    num_combinations: int
    labels: Mapping[str, Mapping[str, int]]
    templates: Mapping[str, int]
    paraphrase: ParaphraseReport | None

    def to_json(self) -> dict[str, Any]:
        """Return the form used in report.json; values of labels are JSON texts."""
        return {
            "num_requested": self.num_requested,
            "num_examples": self.num_examples,
            "num_missing": self.num_missing,
            "missing": [dict(item) for item in self.missing],
            "num_refused_similar": self.num_refused_similar,
            "num_combinations": self.num_combinations,
            "labels": {name: dict(values) for name, values in self.labels.items()},
            "templates": dict(self.templates),
            "paraphrase": None if self.paraphrase is None else self.paraphrase.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateResult:
    """What came out.

    Attributes:
        examples: In random order; ids are the set's name and a number.
        report: Counts.
    """

    examples: tuple[Example, ...]
    report: TemplateReport


def make_from_templates(
    template_set: TemplateSet, settings: TemplateSettings, *, paraphraser: TextGenerator | None = None
) -> TemplateResult:
    """Compose examples; the same set, settings and outputs of the model give the same examples.

    Args:
        template_set: A checked set (``template_reading``).
        settings: How many, which seed, how different.
        paraphraser: Rewords inputs; None leaves them as they were composed.

    Raises:
        DataInvalid: ``no-combination`` when labels and exclusions leave no example.
        GenerationFailed: the model left prompts out.
    """
    space = LabelSpace(template_set)
    combinations = draw_combinations(space, settings.num_examples, settings.seed)
    composed, num_similar = _compose_distinct(space, combinations, settings)
    places = sorted(composed)
    texts = [composed[place] for place in places]
    reworded: Mapping[int, ComposedText] = {}
    paraphrase = None
    if paraphraser is not None:
        reworded, paraphrase = paraphrase_texts(
            texts,
            _choose_places(len(texts), settings),
            template_set=template_set,
            settings=settings,
            generator=paraphraser,
        )
    examples = tuple(
        _make_example(
            template_set,
            reworded.get(number, text),
            number=places[number] + 1,
            seed=settings.seed,
            paraphraser=paraphraser if number in reworded else None,
        )
        for number, text in enumerate(texts)
    )
    missing = [labels for place, labels in enumerate(combinations) if place not in composed]
    report = TemplateReport(
        num_requested=settings.num_examples,
        num_examples=len(examples),
        num_missing=len(missing),
        missing=_count_missing(missing),
        num_refused_similar=num_similar,
        num_combinations=len({tuple(text.labels.values()) for text in texts}),
        labels=_count_labels(space, texts),
        templates=_count_templates(template_set, texts),
        paraphrase=paraphrase,
    )
    return TemplateResult(examples=examples, report=report)


def _compose_distinct(
    space: LabelSpace, combinations: Sequence[Labels], settings: TemplateSettings
) -> tuple[dict[int, ComposedText], int]:
    """Compose one text for each combination so that no two are similar; what finds none is left out.

    In each round every open place gets tries, more from round to round, and the first that is not similar to
    a text before it is taken.
    """
    taken: dict[int, ComposedText] = {}
    num_similar = 0
    for round_number in range(_MAX_ROUNDS):
        open_places = [place for place in range(len(combinations)) if place not in taken]
        if not open_places:
            break
        tries = _compose_round(space, combinations, open_places, round_number, settings)
        before = [text.text for text in taken.values()]
        is_distinct = find_distinct(
            before + [text.text for _, text in tries], threshold=settings.max_similarity
        )[len(before) :]
        num_similar += is_distinct.count(False)
        if round_number and not any(is_distinct):
            break
        for (place, text), fits in zip(tries, is_distinct, strict=True):
            if fits and place not in taken:
                taken[place] = text
    return taken, num_similar


def _compose_round(
    space: LabelSpace,
    combinations: Sequence[Labels],
    open_places: Sequence[int],
    round_number: int,
    settings: TemplateSettings,
) -> list[tuple[int, ComposedText]]:
    most = max(1, _TRIES_PER_EXAMPLE * len(combinations) // len(open_places))
    tries = []
    for number in range(min(2**round_number, most)):
        for place in open_places:
            # A generator for each text, so that none depends on how many were refused before it.
            name = f"{settings.seed}:text:{place}:{round_number}:{number}"
            text = compose_text(space, combinations[place], random.Random(name))  # noqa: S311 (no secret)
            if any(map(str.isalnum, text.text)):
                tries.append((place, text))
    return tries


def _choose_places(num_texts: int, settings: TemplateSettings) -> list[int]:
    generator = random.Random(f"{settings.seed}:paraphrase")  # noqa: S311 (a draw, not a secret)
    num_chosen = round(settings.paraphrase_fraction * num_texts)
    return sorted(generator.sample(range(num_texts), num_chosen))


def _make_example(
    template_set: TemplateSet,
    text: ComposedText,
    *,
    number: int,
    seed: int,
    paraphraser: TextGenerator | None,
) -> Example:
    origin: dict[str, Any] = {
        "kind": "template",
        "template": text.template_id,
        "template_set": template_set.name,
        "template_set_sha256": template_set.sha256,
        "seed": seed,
    }
    if paraphraser is not None:
        origin["paraphrased_by"] = dict(paraphraser.identity)
    system = template_set.system_prompt
    messages = (
        *(() if system is None else (ChatMessage("system", system),)),
        ChatMessage("user", text.text),
        ChatMessage("assistant", text.answer),
    )
    return Example(
        example_id=f"{template_set.name}-{number:05d}",
        messages=messages,
        fields={"reference_source": "rule", "origin": origin},
    )


def _count_missing(missing: Sequence[Labels]) -> tuple[Mapping[str, Any], ...]:
    counts = Counter(to_compact_json(dict(labels)) for labels in missing)
    return tuple(
        {"labels": labels, "num_missing": num} for labels, num in counts.most_common(MAX_LISTED_COMBINATIONS)
    )


def _count_labels(space: LabelSpace, texts: Sequence[ComposedText]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for text in texts:
        for name, value in space.derive(text.labels).items():
            counts.setdefault(name, Counter())[value] += 1
    return {name: dict(sorted(values.items())) for name, values in sorted(counts.items())}


def _count_templates(template_set: TemplateSet, texts: Sequence[ComposedText]) -> dict[str, int]:
    counts = Counter(text.template_id for text in texts)
    return {template.template_id: counts[template.template_id] for template in template_set.templates}
