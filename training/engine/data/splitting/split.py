"""Splits: stratified, whole groups, whole clusters of near duplicates, decided by hashes of ids.

Which units are held out depends on the seed, the ids and what belongs together, not on the order of the
examples. Units are taken in the order of a hash of the seed and their smallest id, so more examples move only
few others: those at the edge of a stratum's part, and those that new near duplicates tie together.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from registry.artifacts.findings import shown, shown_list
from training.engine.data.examples import Example
from training.engine.data.field_values import parse_selector
from training.engine.data.near_duplicates import (
    NEAR_DUPLICATE_SIMILARITY,
    Components,
    SetCollector,
    ShingleSets,
    unite_near_duplicates,
)
from training.engine.data.near_duplicates.shingle_sets import (
    BATCH_CHARACTERS,
    BATCH_TEXTS,
    Numbers,
    hash_text,
)
from training.engine.data.splitting.choosing import MAX_EXCESS, Unit, UnitChooser, compute_wanted
from training.engine.data.splitting.report import SplitReport, StratumCount, Unmet
from training.engine.errors import DataInvalid, Fault

MAX_LISTED_FAULTS: Final = 50
DOMINATING_FRACTION: Final = 0.5
DEFAULT_GROUP: Final = "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlan:
    """Which examples are held out.

    Attributes:
        holdout_ids: Their ids; all others stay in training.
        report: Counts and what could not be met.
    """

    holdout_ids: frozenset[str]
    report: SplitReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Both sides, each in the order of the examples."""

    train: tuple[Example, ...]
    holdout: tuple[Example, ...]
    report: SplitReport


def split_examples(
    examples: Iterable[Example],
    *,
    holdout_fraction: float,
    seed: int,
    stratify_by: str | None = None,
    group_by: str | None = None,
    threshold: float | None = NEAR_DUPLICATE_SIMILARITY,
) -> Split:
    """Split examples that fit into memory; see ``plan_split``."""
    held = tuple(examples)
    plan = plan_split(
        held,
        holdout_fraction=holdout_fraction,
        seed=seed,
        stratify_by=stratify_by,
        group_by=group_by,
        threshold=threshold,
    )
    return Split(
        train=tuple(item for item in held if item.example_id not in plan.holdout_ids),
        holdout=tuple(item for item in held if item.example_id in plan.holdout_ids),
        report=plan.report,
    )


def plan_split(
    examples: Iterable[Example],
    *,
    holdout_fraction: float,
    seed: int,
    stratify_by: str | None = None,
    group_by: str | None = None,
    threshold: float | None = NEAR_DUPLICATE_SIMILARITY,
) -> SplitPlan:
    """Decide which examples are held out.

    General examples never are, nor what hangs together with one. Memory: ids and integer shingles of all
    examples (see ``near_duplicates``).

    Args:
        examples: Read once; ids must be different.
        holdout_fraction: Part of the examples to hold out, above 0 and below 1; 0.05-0.1 is usual.
        seed: Another seed gives another split.
        stratify_by: Field (see ``field_values``) of which every value gives its part, at least one example
            where it has two; None has one stratum.
        group_by: Field whose equal values stay on one side; None uses ``group``. Examples without a value
            are on their own.
        threshold: Examples whose inputs are at least so similar, directly or over others, stay on one side;
            None only looks at groups.

    Raises:
        ConfigInvalid: ``selector-invalid``.
        DataInvalid: ``duplicate-id`` with every id that comes again.
        ValueError: The fraction or the threshold is out of range.
    """
    if not 0.0 < holdout_fraction < 1.0:
        raise ValueError(f"holdout_fraction must be above 0 and below 1, not {holdout_fraction}")
    if threshold is not None and not 0.0 < threshold <= 1.0:
        raise ValueError(f"threshold must be above 0 and at most 1, not {threshold}")
    material = _Material(stratify_by, group_by or DEFAULT_GROUP, reads_inputs=threshold is not None)
    for example in examples:
        material.add(example)
    material.require_different_ids()
    clusters = Components(len(material.ids))
    if threshold is not None:
        unite_near_duplicates(clusters, material.finish_inputs(), threshold=threshold)
    sizes_of_clusters = np.bincount(clusters.names(), minlength=1)
    material.unite_groups(clusters)
    parameters = {
        "holdout_fraction": holdout_fraction,
        "seed": seed,
        "stratify_by": stratify_by,
        "group_by": group_by,
        "threshold": threshold,
    }
    return _choose(material, clusters.names(), sizes_of_clusters, parameters)


class _Material:
    """What a split knows of the examples."""

    def __init__(self, stratify_by: str | None, group_by: str, *, reads_inputs: bool) -> None:
        self._stratum_of = None if stratify_by is None else parse_selector(stratify_by)
        self._group_of = parse_selector(group_by)
        self._inputs: list[str] | None = [] if reads_inputs else None
        self._num_characters = 0
        self._collector = SetCollector()
        self.ids: list[str] = []
        self.is_general = bytearray()
        self.strata, self.groups = array("q"), array("q")
        self.stratum_numbers: dict[str, int] = {}
        self.group_numbers: dict[str, int] = {}

    def add(self, example: Example) -> None:
        self.ids.append(example.example_id)
        self.is_general.append(example.is_general)
        stratum = (self._stratum_of.read(example) or "") if self._stratum_of else ""
        # General examples are in no stratum: they would want a part and could not give it.
        is_counted = not example.is_general
        self.strata.append(self._number(self.stratum_numbers, stratum) if is_counted else -1)
        group = self._group_of.read(example)
        self.groups.append(-1 if group is None else self._number(self.group_numbers, group))
        if self._inputs is not None:
            self._inputs.append(example.input_text)
            self._num_characters += len(example.input_text)
            if len(self._inputs) >= BATCH_TEXTS or self._num_characters >= BATCH_CHARACTERS:
                self._hash_inputs(self._inputs)

    def finish_inputs(self) -> ShingleSets:
        self._hash_inputs(self._inputs or [])
        return self._collector.finish()[0]

    def require_different_ids(self) -> None:
        repeated = sorted(name for name, num in Counter(self.ids).items() if num > 1)
        if repeated:
            faults = [
                Fault(code="duplicate-id", message=f"the id {shown(name)!r} comes more than once")
                for name in repeated[:MAX_LISTED_FAULTS]
            ]
            raise DataInvalid(
                "duplicate-id",
                f"{len(repeated)} ids come more than once: {shown_list(repeated)}",
                faults=faults,
            )

    def unite_groups(self, components: Components) -> None:
        groups = np.array(self.groups)
        members = np.flatnonzero(groups >= 0)
        _, firsts, kinds = np.unique(groups[members], return_index=True, return_inverse=True)
        components.unite(members[firsts[kinds]], members)

    def _hash_inputs(self, inputs: list[str]) -> None:
        self._collector.add(inputs)
        inputs.clear()
        self._num_characters = 0

    @staticmethod
    def _number(numbers: dict[str, int], value: str) -> int:
        return numbers.setdefault(value, len(numbers))


def _choose(
    material: _Material, names: Numbers, sizes_of_clusters: Numbers, parameters: Mapping[str, Any]
) -> SplitPlan:
    # Sorted names make the split independent of the order in which values were met.
    strata = sorted(material.stratum_numbers)
    ranks = {material.stratum_numbers[name]: rank for rank, name in enumerate(strata)}
    units, members = _form_units(material, names, ranks, int(parameters["seed"]))
    sizes = [0] * len(strata)
    for unit in units:
        for stratum, num in unit.counts.items():
            sizes[stratum] += num
    wanted = compute_wanted(sizes, float(parameters["holdout_fraction"]))
    chooser = UnitChooser(units, sizes=sizes, wanted=wanted)
    chooser.choose()
    holdout = {place for number in chooser.chosen for place in members[number]}
    sizes_of_units = [len(places) for places in members]
    report = SplitReport(
        parameters=dict(parameters),
        num_train=len(names) - len(holdout),
        num_holdout=len(holdout),
        num_general=sum(material.is_general),
        wanted_holdout=sum(wanted),
        strata=tuple(
            StratumCount(name=name, num_examples=sizes[i], wanted=wanted[i], got=chooser.got[i])
            for i, name in enumerate(strata)
        ),
        num_groups=len(material.group_numbers),
        largest_group=max(Counter(group for group in material.groups if group >= 0).values(), default=0),
        num_groups_on_both_sides=_count_groups_on_both_sides(material, holdout),
        num_clusters=int((sizes_of_clusters > 1).sum()),
        largest_cluster=int(sizes_of_clusters.max(initial=0)),
        num_units=len(units),
        largest_unit=max(sizes_of_units, default=0),
        unmet=(*chooser.explain(strata), *_explain_whole(strata, sizes_of_units, wanted, parameters)),
    )
    return SplitPlan(holdout_ids=frozenset(material.ids[place] for place in holdout), report=report)


def _form_units(
    material: _Material, names: Numbers, ranks: Mapping[int, int], seed: int
) -> tuple[list[Unit], list[list[int]]]:
    """Return the units and the places of their examples."""
    members: dict[int, list[int]] = {}
    for place, name in enumerate(names.tolist()):
        members.setdefault(name, []).append(place)
    units = []
    for places in members.values():
        key = min(material.ids[place] for place in places)
        counts = Counter(ranks[material.strata[place]] for place in places if not material.is_general[place])
        units.append(
            Unit(
                priority=hash_text(f"{seed}\x00{key}"),
                counts=counts,
                may_move=not any(material.is_general[place] for place in places),
            )
        )
    return units, list(members.values())


def _count_groups_on_both_sides(material: _Material, holdout: set[int]) -> int:
    held = {material.groups[place] for place in holdout}
    kept = {group for place, group in enumerate(material.groups) if place not in holdout}
    return len((held & kept) - {-1})


def _explain_whole(
    strata: list[str], sizes_of_units: list[int], wanted: list[int], parameters: Mapping[str, Any]
) -> list[Unmet]:
    unmet = []
    if parameters["stratify_by"] is not None and strata == [""]:
        message = f"no example has a value in {shown(parameters['stratify_by'])}; there is one stratum"
        unmet.append(Unmet(code="no-values", where="", message=message))
    largest, total = max(sizes_of_units, default=0), sum(sizes_of_units)
    asked = round(parameters["holdout_fraction"] * total)
    if sum(wanted) > MAX_EXCESS * asked + 1:
        message = f"{len(strata)} strata that give one example at least want {sum(wanted)} instead of {asked}"
        unmet.append(Unmet(code="strata-too-many", where="", message=message))
    if largest > 1 and largest > DOMINATING_FRACTION * total:
        message = (
            f"{largest} of {total} examples are one group or hang together by similar inputs and stay on one "
            "side; an instruction that every input repeats belongs into the system message"
        )
        unmet.append(Unmet(code="one-unit-dominates", where="", message=message))
    return unmet
