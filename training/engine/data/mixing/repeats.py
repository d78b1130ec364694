"""Repeating examples with rare values of a field (MISSION C7), within bounds."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRepeats:
    """What was done for one value.

    Attributes:
        value: Of the field.
        num_before: Examples with it.
        num_after: With their repeats.
        factor: What was aimed at: the square root of the most frequent value's number over this one's, at
            most ``max_repeats``. The square root is between the natural weights, under which rare values are
            not learned, and equal ones, under which few texts are learned by heart (as in Mahajan et al.,
            "Exploring the limits of weakly supervised pretraining", 2018).
    """

    value: str
    num_before: int
    num_after: int
    factor: float


@dataclass(frozen=True, slots=True)
class RepeatPlan:
    """How often each example comes: [num_examples], at least 1; and what that means for each value, the most
    frequent one first.
    """

    times: tuple[int, ...]
    values: tuple[ValueRepeats, ...]


def plan_repeats(values: Sequence[str | None], *, max_repeats: int, seed: int) -> RepeatPlan:
    """Return how often each example comes.

    Fractions are spread evenly over the examples of a value, from a start that the seed decides, so that the
    number after differs from factor x number by less than one.

    Args:
        values: Of each example; None is never repeated.
        max_repeats: Greatest factor, at least 1.
        seed: Decides which examples get the fractions.
    """
    counts = Counter(value for value in values if value is not None)
    most = max(counts.values(), default=0)
    factors = {value: min(float(max_repeats), math.sqrt(most / num)) for value, num in counts.items()}
    # A start for each value by its name: another value more must not move the repeats of this one.
    sums = {value: random.Random(f"{seed}/{value}").random() for value in counts}  # noqa: S311 (no secret)
    times = []
    for value in values:
        if value is None or factors[value] == 1.0:
            times.append(1)
            continue
        before = math.floor(sums[value])
        sums[value] += factors[value]
        times.append(math.floor(sums[value]) - before)
    after: Counter[str] = Counter()
    for value, num in zip(values, times, strict=True):
        if value is not None:
            after[value] += num
    return RepeatPlan(
        times=tuple(times),
        values=tuple(
            ValueRepeats(value=value, num_before=num, num_after=after[value], factor=factors[value])
            for value, num in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ),
    )
