"""Intervals and tests behind a verdict. Seeded, vectorised, and None where a number cannot be computed.

Sources: Wilson (1927), J. Am. Stat. Assoc. 22; Efron (1987), "Better bootstrap confidence intervals", J. Am.
Stat. Assoc. 82 (BCa); McNemar (1947), Psychometrika 12, in its exact binomial form. Paired data get paired
statistics: two models on the same examples differ by far less than two independent samples (FACTS section 5).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

DEFAULT_CONFIDENCE: Final = 0.95
DEFAULT_NUM_RESAMPLES: Final = 10_000
DEFAULT_SEED: Final = 20240601

_CHUNK_ELEMENTS: Final = 2_000_000
"""Resampled elements held at once: 16 MB of float64."""

Floats = NDArray[np.float64]
Statistic = Callable[..., Floats]
"""Maps samples of shape [..., n_i] to values of shape [...]."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval.

    Attributes:
        low: Lower end.
        high: Upper end.
        method: ``wilson``, ``bootstrap-bca`` or ``bootstrap-percentile`` (where BCa is not defined).
    """

    low: float
    high: float
    method: str

    def to_json(self) -> list[float]:
        """Return ``[low, high]``."""
        return [self.low, self.high]


def wilson_interval(num_successes: int, num: int, confidence: float = DEFAULT_CONFIDENCE) -> Interval | None:
    """Wilson score interval of a rate, without continuity correction.

    Args:
        num_successes: Between 0 and ``num``.
        num: Number of trials.
        confidence: Between 0 and 1.

    Returns:
        The interval within [0, 1]; None without trials.

    Raises:
        ValueError: The counts or the confidence are impossible.
    """
    if not 0 <= num_successes <= num or not 0 < confidence < 1:
        raise ValueError(f"no rate: {num_successes} of {num} at confidence {confidence}")
    if num == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = num_successes / num
    denominator = 1 + z * z / num
    centre = (rate + z * z / (2 * num)) / denominator
    half = z / denominator * math.sqrt(rate * (1 - rate) / num + z * z / (4 * num * num))
    # At the ends the formula gives exactly 0 or 1; floating point may miss by an ulp.
    low = 0.0 if num_successes == 0 else max(0.0, centre - half)
    high = 1.0 if num_successes == num else min(1.0, centre + half)
    return Interval(low, high, "wilson")


def bootstrap_mean(
    values: Sequence[float],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    num_resamples: int = DEFAULT_NUM_RESAMPLES,
    seed: int = DEFAULT_SEED,
) -> Interval | None:
    """BCa bootstrap interval of a mean; None for fewer than two values.

    The mean of paired differences makes this the paired bootstrap.
    """
    return _bootstrap((values,), _mean, confidence, num_resamples, seed)


def bootstrap_ratio_of_means(
    numerator: Sequence[float],
    denominator: Sequence[float],
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    num_resamples: int = DEFAULT_NUM_RESAMPLES,
    seed: int = DEFAULT_SEED,
) -> Interval | None:
    """BCa bootstrap interval of mean(numerator) / mean(denominator) of two independent sets.

    Returns:
        None for fewer than two values in either set, or when a resample's denominator is 0 (no finite ratio).
    """
    return _bootstrap((numerator, denominator), _ratio_of_means, confidence, num_resamples, seed)


def mcnemar_exact(num_only_first: int, num_only_second: int) -> float | None:
    """Two-sided exact McNemar test of two models on the same examples.

    Args:
        num_only_first: Examples that only the first model passes.
        num_only_second: Examples that only the second model passes.

    Returns:
        p-value: min(1, 2 P(X <= min)) for X ~ Binomial(sum, 1/2); None when no example tells the two apart.

    Raises:
        ValueError: A negative count.
    """
    if num_only_first < 0 or num_only_second < 0:
        raise ValueError("counts cannot be negative")
    num = num_only_first + num_only_second
    if num == 0:
        return None
    tail = sum(math.comb(num, k) for k in range(min(num_only_first, num_only_second) + 1))
    # Integers of any size divide exactly rounded, where 2.0**num would overflow.
    return min(1.0, 2 * tail / (1 << num))


def _mean(sample: Floats) -> Floats:
    return np.asarray(sample.mean(axis=-1), dtype=np.float64)


def _ratio_of_means(numerator: Floats, denominator: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(numerator.mean(axis=-1) / denominator.mean(axis=-1), dtype=np.float64)


def _bootstrap(
    samples: tuple[Sequence[float], ...],
    statistic: Statistic,
    confidence: float,
    num_resamples: int,
    seed: int,
) -> Interval | None:
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if any(array.size < 2 for array in arrays):
        return None
    observed = float(statistic(*arrays))
    if math.isfinite(observed) and all(array.min() == array.max() for array in arrays):
        # Every resample would be the same.
        return Interval(observed, observed, "bootstrap-percentile")
    values = _resampled(arrays, statistic, num_resamples, np.random.default_rng(seed))
    if not math.isfinite(observed) or not np.isfinite(values).all():
        return None
    if values.min() == values.max():
        # Every resample gives the same: the data do not vary, and neither can the bootstrap say more.
        return Interval(observed, observed, "bootstrap-percentile")
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    adjusted = _bca_tails(arrays, statistic, observed, values, tails)
    low, high = np.quantile(values, tails if adjusted is None else adjusted)
    return Interval(float(low), float(high), "bootstrap-percentile" if adjusted is None else "bootstrap-bca")


def _resampled(
    arrays: Sequence[Floats], statistic: Statistic, num_resamples: int, generator: np.random.Generator
) -> Floats:
    rows = max(1, _CHUNK_ELEMENTS // max(array.size for array in arrays))
    chunks = []
    for start in range(0, num_resamples, rows):
        count = min(rows, num_resamples - start)
        drawn = [array[generator.integers(0, array.size, size=(count, array.size))] for array in arrays]
        chunks.append(statistic(*drawn))
    return np.concatenate(chunks)


def _bca_tails(
    arrays: Sequence[Floats],
    statistic: Statistic,
    observed: float,
    values: Floats,
    tails: tuple[float, float],
) -> tuple[float, float] | None:
    """Tail probabilities after bias correction z0 and acceleration a (Efron 1987, eq. 2.3); None where
    undefined.
    """
    # Ties count half, as a discrete statistic often equals its observed value.
    below = float(np.mean(values < observed) + np.mean(values == observed) / 2)
    acceleration = _acceleration(arrays, statistic)
    if not 0 < below < 1 or acceleration is None:
        return None
    normal = NormalDist()
    bias = normal.inv_cdf(below)
    adjusted = []
    for tail in tails:
        shifted = bias + normal.inv_cdf(tail)
        denominator = 1 - acceleration * shifted
        if denominator <= 0:
            return None
        adjusted.append(normal.cdf(bias + shifted / denominator))
    return adjusted[0], adjusted[1]


def _acceleration(arrays: Sequence[Floats], statistic: Statistic) -> float | None:
    """Acceleration from the jackknife; several samples combine as in Davison and Hinkley (1997), section
    5.3.
    """
    cubes = squares = 0.0
    for position, array in enumerate(arrays):
        size = array.size
        left_out = (array.sum() - array) / (size - 1)
        # The statistics here are functions of means, so leaving one out is a sample of one: the mean of the
        # rest.
        means = [other.mean()[None] if i != position else left_out for i, other in enumerate(arrays)]
        jackknife = statistic(*(mean[:, None] for mean in means))
        if not np.isfinite(jackknife).all():
            return None
        influence = (size - 1) * (jackknife.mean() - jackknife)
        cubes += float((influence**3).sum()) / size**3
        squares += float((influence**2).sum()) / size**2
    if squares == 0:
        return None
    return cubes / (6 * squares * math.sqrt(squares))
