"""Which combinations of labels a template set can state, and drawing them in balance."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Final

from training.engine.data.making.structured_answers import parse_strict_json
from training.engine.data.making.template_set import Labels, Template, TemplateSet, Wording, excludes
from training.engine.errors import DataInvalid

MAX_ENUMERATED = 5000
"""Up to so many combinations are looked at one by one; of more, labels are drawn each for itself."""

_MAX_DRAWS: Final = 200
_DRAWS_PER_LOOSENED_LABEL: Final = 20


class LabelSpace:
    """The combinations of a template set whose slots have no cycle.

    Attributes:
        template_set: The set.
        domains: The values of each label that texts state.
        carried: For each slot the labels that its values state, slots within them included.
    """

    def __init__(self, template_set: TemplateSet) -> None:
        self.template_set = template_set
        self.domains = template_set.domains()
        self.carried: dict[str, frozenset[str]] = {}
        for name in template_set.slots:
            self._find_carried(name)
        self._names = {name: tuple(sorted(labels)) for name, labels in self.carried.items()}
        self._options: dict[tuple[str, tuple[str, ...]], tuple[Wording, ...]] = {}

    @property
    def num_combinations(self) -> int:
        """All combinations of the labels' values, possible or not."""
        return prod(len(values) for values in self.domains.values())

    @property
    def is_enumerable(self) -> bool:
        """Whether the combinations can be looked at one by one."""
        return self.num_combinations <= MAX_ENUMERATED

    def combinations(self) -> Iterator[Labels]:
        """Yield all combinations, possible or not."""
        for values in product(*self.domains.values()):
            yield dict(zip(self.domains, values, strict=True))

    def carried_by(self, wording: Wording) -> frozenset[str]:
        """Return the labels that a wording states by itself or through its slots."""
        nested = (self.carried.get(name, frozenset()) for name in wording.slots)
        return frozenset(wording.labels).union(*nested)

    def options(self, slot: str, labels: Labels) -> tuple[Wording, ...]:
        """Return the values of a slot that fit labels, in their order."""
        key = (slot, tuple(labels[name] for name in self._names[slot]))
        if key not in self._options:
            values = self.template_set.slots[slot]
            self._options[key] = tuple(value for value in values if self._fits(value, labels))
        return self._options[key]

    def templates_for(self, labels: Labels) -> tuple[Template, ...]:
        """Return the templates that can state labels."""
        return tuple(item for item in self.template_set.templates if self._fits(item.wording, labels))

    def derive(self, labels: Labels) -> Labels:
        """Return labels together with those that follow by the rules."""
        derived = dict(labels)
        for rule in self.template_set.rules:
            if rule.fits(derived):
                for name, value in rule.then.items():
                    derived.setdefault(name, value)
        return derived

    def find_problem(self, labels: Labels) -> str:
        """Return why a combination gives no example: ``excluded``, ``no-template``, ``label-undetermined``,
        ``answer-not-in-schema``; "" when it gives one.
        """
        derived = self.derive(labels)
        template_set = self.template_set
        if any(excludes(condition, derived) for condition in template_set.excluded):
            return "excluded"
        if not self.templates_for(labels):
            return "no-template"
        if any(name not in derived for name in template_set.answer_fields):
            return "label-undetermined"
        if template_set.schema is not None:
            answer = parse_strict_json(template_set.answer_of(derived))
            if template_set.schema.find_fault(answer):
                return "answer-not-in-schema"
        return ""

    def _fits(self, wording: Wording, labels: Labels) -> bool:
        states = all(labels[name] == value for name, value in wording.labels.items())
        return states and all(self.options(name, labels) for name in wording.slots)

    def _find_carried(self, slot: str) -> frozenset[str]:
        if slot not in self.carried:
            found: set[str] = set()
            for value in self.template_set.slots[slot]:
                found.update(value.labels)
                for name in value.slots:
                    found |= self._find_carried(name)
            self.carried[slot] = frozenset(found)
        return self.carried[slot]


def draw_combinations(space: LabelSpace, num_examples: int, seed: int) -> list[Labels]:
    """Draw a combination of labels for each example, in balance.

    With at least as many examples as possible combinations, every combination occurs equally often (one
    more or less), in random order. With fewer examples, or more than ``MAX_ENUMERATED`` combinations, the
    values of each label occur equally often as far as the set allows, and a combination hardly ever twice.

    Raises:
        DataInvalid: ``no-combination`` when none is found that gives an example.
    """
    generator = random.Random(f"{seed}:labels")  # noqa: S311 (a draw, not a secret)
    possible: list[Labels] = []
    if space.is_enumerable:
        possible = [labels for labels in space.combinations() if not space.find_problem(labels)]
        if not possible:
            raise DataInvalid("no-combination", "No combination of labels gives an example.")
    if not possible or num_examples < len(possible):
        return _draw_balanced(space, possible, num_examples, generator)
    drawn: list[Labels] = []
    while len(drawn) < num_examples:
        generator.shuffle(possible)
        drawn += possible[: num_examples - len(drawn)]
    return drawn


def _draw_balanced(
    space: LabelSpace, possible: list[Labels], num_examples: int, generator: random.Random
) -> list[Labels]:
    used: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[str, ...]] = set()
    drawn = []
    for _ in range(num_examples):
        labels = _draw_one(space, possible, used, seen, generator)
        drawn.append(labels)
        seen.add(tuple(labels.values()))
        used.update(labels.items())
    return drawn


def _draw_one(
    space: LabelSpace,
    possible: list[Labels],
    used: Mapping[tuple[str, str], int],
    seen: set[tuple[str, ...]],
    generator: random.Random,
) -> Labels:
    """Take the least used value of each label; where they do not go together, loosen ever more labels."""
    for attempt in range(_MAX_DRAWS):
        num_loose = min(len(space.domains), -(-attempt // _DRAWS_PER_LOOSENED_LABEL))
        loose = set(generator.sample(list(space.domains), num_loose))
        labels = {
            name: generator.choice(values)
            if name in loose
            else min(values, key=lambda value: (used[name, value], generator.random()))
            for name, values in space.domains.items()
        }
        is_new = tuple(labels.values()) not in seen or attempt > _MAX_DRAWS // 2
        if is_new and not space.find_problem(labels):
            return labels
    if possible:
        return generator.choice(possible)
    raise DataInvalid(
        "no-combination",
        f"No combination of labels that gives an example was found in {_MAX_DRAWS} draws: "
        "the values go together too rarely. Exclude less, or declare fewer labels in one value.",
    )
