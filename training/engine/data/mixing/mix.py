"""Mixing: what to draw and how often, then everything in one random order.

Examples stay where they are, in memory or in files, until they are written; held are one number for each, the
hash of its id, and its value in the field that balances.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from training.engine.data.example_files import WrittenFile, write_examples
from training.engine.data.examples import Example
from training.engine.data.field_values import parse_selector
from training.engine.data.mixing.amounts import compute_amounts
from training.engine.data.mixing.example_file import ExampleFile
from training.engine.data.mixing.repeats import RepeatPlan, ValueRepeats, plan_repeats
from training.engine.data.mixing.unchanged import complete_unchanged, find_unchanged, is_unchanged
from training.engine.data.near_duplicates.shingle_sets import hash_text

MAX_REPEATS: Final = 3
TASK, GENERAL, UNCHANGED = "task", "general", "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """What there was too little of.

    Attributes:
        code: general-too-few, unchanged-too-few, pool-not-unchanged, no-values.
        message: With the numbers, for people.
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MixReport:
    """A mix in numbers; fractions are of the whole, 0-1.

    Attributes:
        parameters: All that decided it.
        num_examples: The whole.
        num_task: Examples of the task without repeats, general ones among them left out.
        num_repeats: Repeats of rare values.
        num_unchanged: Unchanged examples of the task, repeats included, and drawn ones.
        num_unchanged_drawn: Of these, the drawn ones.
        num_general: General examples, those that were in the task's data and drawn ones.
        num_general_drawn: Of these, the drawn ones.
        unchanged_fraction: What came out.
        general_fraction: What came out.
        values: Repeats by value of the field that balances.
        shortfalls: What there was too little of.
    """

    parameters: Mapping[str, Any]
    num_examples: int
    num_task: int
    num_repeats: int
    num_unchanged: int
    num_unchanged_drawn: int
    num_general: int
    num_general_drawn: int
    unchanged_fraction: float
    general_fraction: float
    values: tuple[ValueRepeats, ...]
    shortfalls: tuple[Shortfall, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            **asdict(self),
            "parameters": dict(self.parameters),
            "values": [asdict(item) for item in self.values],
            "shortfalls": [asdict(item) for item in self.shortfalls],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Mixed examples in random order, and the report."""

    examples: tuple[Example, ...]
    report: MixReport


def mix_examples(
    task: Sequence[Example],
    *,
    general: Sequence[Example] = (),
    unchanged: Sequence[Example] = (),
    general_fraction: float = 0.0,
    unchanged_fraction: float = 0.0,
    balance_by: str | None = None,
    max_repeats: int = MAX_REPEATS,
    seed: int,
) -> Mix:
    """Mix examples and shuffle.

    Args:
        task: All are used. What among them is general or unchanged counts towards the fractions.
        general: To draw from, none twice; they get ``"role": "general"``, which keeps the task's system
            prompt away from them in training.
        unchanged: To draw from, none twice; answer equal to the input, or no answer yet.
        general_fraction: Part of the result that is general, 0-1; 0.05-0.2 is usual (MISSION C4).
        unchanged_fraction: Part of the result that has nothing to change, 0-1; about 0.1 for tasks that
            rewrite.
        balance_by: Field (see ``field_values``) whose rare values are repeated; None repeats nothing.
        max_repeats: Copies of one example at most, itself included.
        seed: Decides draws and order.

    Raises:
        ConfigInvalid: ``selector-invalid``.
        ValueError: A fraction or ``max_repeats`` is out of range.
    """
    planner = _Planner(task, general, unchanged, balance_by=balance_by, max_repeats=max_repeats, seed=seed)
    report = planner.plan(general_fraction=general_fraction, unchanged_fraction=unchanged_fraction)
    return Mix(examples=tuple(planner.iterate_mixed()), report=report)


def mix_files(
    task: Path,
    *,
    target: Path,
    general: Path | None = None,
    unchanged: Path | None = None,
    general_fraction: float = 0.0,
    unchanged_fraction: float = 0.0,
    balance_by: str | None = None,
    max_repeats: int = MAX_REPEATS,
    seed: int,
) -> tuple[WrittenFile, MixReport]:
    """Mix files that ``write_examples`` made into another, without holding their examples; see
    ``mix_examples``.
    """
    with ExitStack() as stack:
        sources: list[Sequence[Example]] = [
            () if path is None else stack.enter_context(ExampleFile(path))
            for path in (task, general, unchanged)
        ]
        planner = _Planner(*sources, balance_by=balance_by, max_repeats=max_repeats, seed=seed)
        report = planner.plan(general_fraction=general_fraction, unchanged_fraction=unchanged_fraction)
        return write_examples(target, planner.iterate_mixed()), report


class _Planner:
    def __init__(
        self,
        task: Sequence[Example],
        general: Sequence[Example],
        unchanged: Sequence[Example],
        *,
        balance_by: str | None,
        max_repeats: int,
        seed: int,
    ) -> None:
        if max_repeats < 1:
            raise ValueError(f"max_repeats must be at least 1, not {max_repeats}")
        self._sources = {TASK: task, GENERAL: general, UNCHANGED: unchanged}
        self._balance_by, self._max_repeats, self._seed = balance_by, max_repeats, seed
        self._order: list[tuple[str, int, int]] = []
        self._used_ids: set[int] = set()

    def plan(self, *, general_fraction: float, unchanged_fraction: float) -> MixReport:
        facts = _read_task(self._sources[TASK], self._balance_by)
        repeats = plan_repeats(facts.values, max_repeats=self._max_repeats, seed=self._seed)
        num_unchanged = sum(
            times for times, is_same in zip(repeats.times, facts.are_unchanged, strict=True) if is_same
        )
        num_general = sum(facts.are_general)
        pool = find_unchanged(self._sources[UNCHANGED])
        amounts = compute_amounts(
            num_changed=sum(repeats.times) - num_unchanged - num_general,
            num_unchanged=num_unchanged,
            num_general=num_general,
            available_general=len(self._sources[GENERAL]),
            available_unchanged=len(pool),
            general_fraction=general_fraction,
            unchanged_fraction=unchanged_fraction,
        )
        drawn_general = self._draw(GENERAL, range(len(self._sources[GENERAL])), amounts.general)
        drawn_unchanged = self._draw(UNCHANGED, pool, amounts.unchanged)
        self._order = [
            *(
                (TASK, place, copy)
                for place, times in enumerate(repeats.times)
                for copy in range(1, times + 1)
            ),
            *((GENERAL, place, 1) for place in drawn_general),
            *((UNCHANGED, place, 1) for place in drawn_unchanged),
        ]
        self._random("order").shuffle(self._order)
        self._used_ids = facts.id_hashes
        whole = max(len(self._order), 1)
        return MixReport(
            parameters={
                "general_fraction": general_fraction,
                "unchanged_fraction": unchanged_fraction,
                "balance_by": self._balance_by,
                "max_repeats": self._max_repeats,
                "seed": self._seed,
            },
            num_examples=len(self._order),
            num_task=len(repeats.times) - num_general,
            num_repeats=sum(repeats.times) - len(repeats.times),
            num_unchanged=num_unchanged + amounts.unchanged,
            num_unchanged_drawn=amounts.unchanged,
            num_general=num_general + amounts.general,
            num_general_drawn=amounts.general,
            unchanged_fraction=(num_unchanged + amounts.unchanged) / whole,
            general_fraction=(num_general + amounts.general) / whole,
            values=repeats.values,
            shortfalls=(
                *_explain_draw(GENERAL, amounts.wanted_general, amounts.general),
                *_explain_draw(UNCHANGED, amounts.wanted_unchanged, amounts.unchanged),
                *_explain_pool(len(self._sources[UNCHANGED]), len(pool)),
                *_explain_values(self._balance_by, repeats),
            ),
        )

    def iterate_mixed(self) -> Iterator[Example]:
        """Yield the examples in the planned order; ids are made different where they are not."""
        for source, place, copy in self._order:
            example = self._sources[source][place]
            if source == GENERAL:
                example = replace(example.with_fields(role="general"), is_general=True)
            elif source == UNCHANGED:
                example = complete_unchanged(example) or example
            if source == TASK and copy == 1:
                yield example
                continue
            if copy > 1:
                origin = {**example.origin, "repeat_of": example.example_id, "repeat": copy}
                example = replace(
                    example.with_fields(origin=origin), example_id=f"{example.example_id}-repeat{copy}"
                )
            yield replace(example, example_id=self._make_different(example.example_id))

    def _draw(self, name: str, places: Sequence[int], num: int) -> list[int]:
        return self._random(name).sample(places, num)

    def _random(self, purpose: str) -> random.Random:
        return random.Random(f"{self._seed}/{purpose}")  # noqa: S311 (an order, not a secret)

    def _make_different(self, example_id: str) -> str:
        candidate, number = example_id, 1
        while hash_text(candidate) in self._used_ids:
            number += 1
            candidate = f"{example_id}-{number}"
        self._used_ids.add(hash_text(candidate))
        return candidate


@dataclass(frozen=True, slots=True)
class _TaskFacts:
    """What the task's examples are; all lists are [num_task]."""

    values: list[str | None]
    are_unchanged: bytearray
    are_general: bytearray
    id_hashes: set[int]


def _read_task(task: Iterable[Example], balance_by: str | None) -> _TaskFacts:
    selector = None if balance_by is None else parse_selector(balance_by)
    facts = _TaskFacts([], bytearray(), bytearray(), set())
    for example in task:
        is_task = not example.is_general
        facts.values.append(selector.read(example) if selector and is_task else None)
        facts.are_unchanged.append(is_task and is_unchanged(example))
        facts.are_general.append(example.is_general)
        facts.id_hashes.add(hash_text(example.example_id))
    return facts


def _explain_draw(name: str, wanted: int, got: int) -> list[Shortfall]:
    if got == wanted:
        return []
    return [
        Shortfall(code=f"{name}-too-few", message=f"{wanted} {name} examples were wanted, {got} there were")
    ]


def _explain_pool(num_pool: int, num_fit: int) -> list[Shortfall]:
    if num_fit == num_pool:
        return []
    message = f"{num_pool - num_fit} of {num_pool} examples given as unchanged have another answer than input"
    return [Shortfall(code="pool-not-unchanged", message=message)]


def _explain_values(balance_by: str | None, repeats: RepeatPlan) -> list[Shortfall]:
    if balance_by is None or repeats.values:
        return []
    return [Shortfall(code="no-values", message="no example has a value in the field that should balance")]
