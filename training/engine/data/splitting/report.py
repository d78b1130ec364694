"""What a split did, and what could not be met."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCount:
    """Examples of one value of the field that stratifies.

    Attributes:
        name: The value; "" for examples without one.
        num_examples: All of them, general examples left out.
        wanted: How many should be held out.
        got: How many are.
    """

    name: str
    num_examples: int
    wanted: int
    got: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """Something that was asked for and could not be had.

    Attributes:
        code: single-example, one-unit, units-too-large, units-too-many, no-values, strata-too-many,
            one-unit-dominates.
        where: Name of the stratum; "" for the whole.
        message: Why, for people.
    """

    code: str
    where: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReport:
    """A split in numbers.

    Attributes:
        parameters: All that decided it.
        num_train: Examples that stay, general ones included.
        num_holdout: Examples held out.
        num_general: General examples, which always stay.
        wanted_holdout: Sum of what the strata want.
        strata: Sorted by name; one, named "", without a field.
        num_groups: Different groups.
        largest_group: Examples of the largest one.
        num_groups_on_both_sides: Counted after the split; 0.
        num_clusters: Clusters of near duplicates with at least two examples.
        largest_cluster: Examples of the largest one.
        num_units: What was moved whole: groups and clusters that hang together, or single examples.
        largest_unit: Examples of the largest one.
        unmet: What could not be had.
    """

    parameters: Mapping[str, Any]
    num_train: int
    num_holdout: int
    num_general: int
    wanted_holdout: int
    strata: tuple[StratumCount, ...]
    num_groups: int
    largest_group: int
    num_groups_on_both_sides: int
    num_clusters: int
    largest_cluster: int
    num_units: int
    largest_unit: int
    unmet: tuple[Unmet, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            **asdict(self),
            "parameters": dict(self.parameters),
            "strata": [asdict(item) for item in self.strata],
            "unmet": [asdict(item) for item in self.unmet],
        }
