"""Small robust statistics: one wild step must not decide."""

import math
from collections.abc import Sequence
from typing import Final

_NORMAL_SD_PER_MAD: Final = 1.4826
"""Standard deviation of a normal distribution in units of its median absolute deviation."""


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def robust_sd(values: Sequence[float]) -> float:
    """Return an estimate of the standard deviation from the median absolute deviation."""
    centre = median(values)
    return _NORMAL_SD_PER_MAD * median([abs(value - centre) for value in values])


def standard_error_of_difference(values: Sequence[float], *, num_first: int, num_second: int) -> float:
    """Return the standard error of the difference of two means of so many values that scatter like
    ``values``.
    """
    return robust_sd(values) * math.sqrt(1 / num_first + 1 / num_second)
