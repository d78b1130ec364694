"""Composes the commonsense questions of the regression set together with their right answers.

Every question can be answered from its own text. The right option is known because the question is built
from it; ``regression_rules.solve`` finds it again from the text alone, and ``generate.py`` compares the two.
Only the standard library is used.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from regression_rules import CHOICE_REQUEST, LABELS

NAMES: Final = (
    "Anna",
    "Ben",
    "Clara",
    "David",
    "Emma",
    "Frank",
    "Greta",
    "Henry",
    "Ida",
    "Jack",
    "Kate",
    "Leo",
)
COLOURS: Final = ("red", "blue", "green", "yellow", "black", "white", "brown")
THINGS: Final = ("ball", "hat", "cup", "bag", "book", "box", "coat", "scarf")
PLACES: Final = (
    *("in the drawer", "on the table", "under the bed", "in the kitchen", "on the shelf", "in the garden"),
    *("under the chair", "in the basket"),
)
ACTS: Final = (
    *("feeds the cat", "waters the plants", "cooks the soup", "cleans the windows", "drives the bus"),
    *("paints the fence", "repairs the clock", "carries the boxes"),
)
STEPS: Final = (
    *("washed the car", "read the letter", "locked the door", "baked the cake", "called the doctor"),
    *("opened the window", "watered the roses", "ate the apple"),
)

OCCASIONS: Final = ("it rains", "it snows", "it is cold", "it is late", "it is windy", "it is hot")
TAKEN: Final = ("the bus", "the train", "an umbrella", "a taxi", "a coat", "the car", "a map", "the bicycle")
# A kind, what it is a kind of, and what all of these have.
CLASSES: Final = (
    *(("robin", "bird", "feathers"), ("trout", "fish", "fins"), ("beetle", "insect", "six legs")),
    *(("taxi", "car", "wheels"), ("novel", "book", "pages"), ("oak", "tree", "roots")),
    *(("shirt", "garment", "seams"), ("rose", "flower", "petals")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with four options.

    Attributes:
        text: the question.
        options: what the four options say, the right one first.
        sentence: the sentence of an option, with ``{}`` for what it says.
    """

    text: str
    options: tuple[str, ...]
    sentence: str

    @property
    def right_sentence(self) -> str:
        """The right option as it stands in the prompt."""
        return self.sentence.format(self.options[0])

    def to_prompt(self, number: int) -> str:
        """The prompt with lettered options; the right one moves on by one place with each number."""
        place = number % len(LABELS)
        ordered = list(self.options[1:])
        ordered.insert(place, self.options[0])
        lines = [
            f"{label}. {self.sentence.format(option)}" for label, option in zip(LABELS, ordered, strict=True)
        ]
        return "\n".join([self.text, *lines, CHOICE_REQUEST])


def compose_questions(seed: int, *, num_of_each: int) -> list[Question]:
    """``num_of_each`` different questions of each kind, kind by kind; the same seed gives the same ones.

    Raises:
        ValueError: more are wanted than ``CLASSES`` allows, which has one question for each of its lines.
    """
    if num_of_each > len(CLASSES):
        raise ValueError(f"at most {len(CLASSES)} questions of each kind, not {num_of_each}")
    rng = random.Random(seed)
    composed: list[Question] = []
    for compose in KINDS:
        of_kind: dict[str, Question] = {}
        while len(of_kind) < num_of_each:
            question = compose(rng)
            of_kind.setdefault(question.text, question)
        composed += of_kind.values()
    return composed


def _ask_colour(rng: random.Random) -> Question:
    first, second = rng.sample(THINGS, 2)
    right, wrong, *others = rng.sample(COLOURS, 4)
    pairs = [(right, first), (wrong, second)]
    rng.shuffle(pairs)
    owned = " and ".join(f"a {colour} {thing}" for colour, thing in pairs)
    return Question(
        text=f"{rng.choice(NAMES)} has {owned}. What colour is the {first}?",
        options=(right, wrong, *others),
        sentence=f"The {first} is {{}}.",
    )


def _ask_place(rng: random.Random) -> Question:
    first, second = rng.sample(THINGS, 2)
    right, wrong, *others = rng.sample(PLACES, 4)
    pairs = [(first, right), (second, wrong)]
    rng.shuffle(pairs)
    stated = " and ".join(f"the {thing} is {place}" for thing, place in pairs)
    return Question(
        text=f"{stated[0].upper()}{stated[1:]}. Where is the {first}?",
        options=(right, wrong, *others),
        sentence=f"The {first} is {{}}.",
    )


def _ask_doer(rng: random.Random) -> Question:
    names, acts = rng.sample(NAMES, 4), rng.sample(ACTS, 4)
    pairs = list(zip(names, acts, strict=True))
    rng.shuffle(pairs)
    stated = [f"{name} {act}" for name, act in pairs]
    return Question(
        text=f"{', '.join(stated[:-1])} and {stated[-1]}. Who {acts[0]}?",
        options=tuple(names),
        sentence=f"{{}} {acts[0]}.",
    )


def _ask_occasion(rng: random.Random) -> Question:
    name, occasion, taken = rng.choice(NAMES), rng.choice(OCCASIONS), rng.sample(TAKEN, 4)
    return Question(
        text=f"When {occasion}, {name} takes {taken[0]}. Today {occasion}. What does {name} take?",
        options=tuple(taken),
        sentence=f"{name} takes {{}}.",
    )


def _ask_class(rng: random.Random) -> Question:
    (kind, of, part), *others = rng.sample(CLASSES, 4)
    return Question(
        text=f"Every {kind} is a kind of {of}, and every {of} has {part}. What does every {kind} have?",
        options=(part, *(other[2] for other in others)),
        sentence=f"Every {kind} has {{}}.",
    )


def _ask_step(rng: random.Random) -> Question:
    name, place = rng.choice(NAMES), rng.choice(("first", "last"))
    steps = rng.sample(STEPS, 4)
    right = steps[0] if place == "first" else steps[2]
    return Question(
        text=f"First {name} {steps[0]}, then {name} {steps[1]}, and last {name} {steps[2]}. "
        f"What did {name} do {place}?",
        options=(right, *(step for step in steps if step != right)),
        sentence=f"{place.title()} of all, {name} {{}}." if place == "first" else f"At last {name} {{}}.",
    )


KINDS: Final[Sequence[Callable[[random.Random], Question]]] = (
    *(_ask_colour, _ask_place, _ask_doer),
    *(_ask_occasion, _ask_class, _ask_step),
)
