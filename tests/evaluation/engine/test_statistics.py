import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluation.engine.statistics import (
    bootstrap_mean,
    bootstrap_ratio_of_means,
    mcnemar_exact,
    wilson_interval,
)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(deadline=None)
def test_wilson_is_inside_0_1_and_holds_the_rate(counts: tuple[int, int]) -> None:
    successes, num = counts
    interval = wilson_interval(successes, num)
    assert interval is not None
    assert 0 <= interval.low <= successes / num <= interval.high <= 1
    assert interval.low < interval.high


@pytest.mark.parametrize(("successes", "num"), [(0, 10), (1, 29), (81, 263), (148, 148), (100, 120)])
def test_wilson_is_that_of_scipy(successes: int, num: int) -> None:
    interval = wilson_interval(successes, num)
    expected = stats.binomtest(successes, num).proportion_ci(method="wilson")
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_of_newcombes_table() -> None:
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3: 81/263 and 1/29.
    first, second = wilson_interval(81, 263), wilson_interval(1, 29)
    assert first is not None
    assert second is not None
    assert (round(first.low, 4), round(first.high, 4)) == (0.2553, 0.3662)
    assert (round(second.low, 4), round(second.high, 4)) == (0.0061, 0.1718)


def test_wilson_without_trials_is_none_and_impossible_counts_are_refused() -> None:
    assert wilson_interval(0, 0) is None
    with pytest.raises(ValueError, match="no rate"):
        wilson_interval(2, 1)
    with pytest.raises(ValueError, match="no rate"):
        wilson_interval(1, 2, confidence=1.0)


@pytest.mark.parametrize(
    ("first", "second", "p_value"),
    [
        (0, 5, 2 / 32),  # 2 (1/2)^5
        (1, 6, 2 * (1 + 7) / 128),  # 2 (C(7,0) + C(7,1)) / 2^7
        (3, 3, 1.0),
        (0, 1, 1.0),
    ],
)
def test_mcnemar_by_hand(first: int, second: int, p_value: float) -> None:
    assert mcnemar_exact(first, second) == pytest.approx(p_value, abs=1e-15)
    assert mcnemar_exact(second, first) == mcnemar_exact(first, second)


@pytest.mark.parametrize(("first", "second"), [(10, 25), (400, 480), (900, 1200)])
def test_mcnemar_is_the_binomial_test(first: int, second: int) -> None:
    expected = stats.binomtest(first, first + second, 0.5).pvalue
    assert mcnemar_exact(first, second) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_without_differences_is_none() -> None:
    assert mcnemar_exact(0, 0) is None
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 0)


def test_bootstrap_mean_is_near_scipys_bca() -> None:
    values = np.random.default_rng(1).exponential(size=80)
    interval = bootstrap_mean(list(values))
    expected = stats.bootstrap(
        (values,), np.mean, method="BCa", n_resamples=10_000, rng=np.random.default_rng(2)
    ).confidence_interval
    assert interval is not None
    assert interval.method == "bootstrap-bca"
    # Two runs of 10,000 resamples: the ends vary by about 1 % of the interval's width.
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.02)


def test_bootstrap_ratio_is_near_scipys_bca() -> None:
    generator = np.random.default_rng(3)
    first, second = generator.uniform(0.3, 1, size=60), generator.uniform(0.5, 1, size=90)

    def ratio(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(a.mean(axis=axis) / b.mean(axis=axis))

    interval = bootstrap_ratio_of_means(list(first), list(second))
    expected = stats.bootstrap(
        (first, second), ratio, method="BCa", n_resamples=10_000, rng=np.random.default_rng(4)
    ).confidence_interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_bootstrap_mean_is_near_the_normal_interval_for_a_large_sample() -> None:
    values = np.random.default_rng(5).normal(size=2000)
    interval = bootstrap_mean(list(values))
    half = 1.959964 * values.std(ddof=1) / math.sqrt(values.size)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.005
    )


def test_the_bootstrap_is_the_same_every_time_and_depends_on_the_seed() -> None:
    values = list(np.random.default_rng(6).uniform(size=40))
    assert bootstrap_mean(values) == bootstrap_mean(values)
    assert bootstrap_mean(values, seed=1) != bootstrap_mean(values, seed=2)


@pytest.mark.parametrize("value", [0.0, 0.1, -1.0])
def test_constant_values_have_an_interval_of_no_width(value: float) -> None:
    interval = bootstrap_mean([value] * 30)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((value, value))


def test_what_cannot_be_computed_is_none() -> None:
    assert bootstrap_mean([]) is None
    assert bootstrap_mean([1.0]) is None
    assert bootstrap_ratio_of_means([1.0, 1.0], [1.0]) is None
    assert bootstrap_ratio_of_means([1.0, 1.0], [0.0, 0.0]) is None
    # One success in 20: some resample has none, so the ratio is not always finite.
    assert bootstrap_ratio_of_means([1.0] * 20, [1.0] + [0.0] * 19) is None


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=2, max_size=40))
@settings(deadline=None)
def test_a_bootstrap_interval_lies_within_the_data(values: list[float]) -> None:
    interval = bootstrap_mean(values, num_resamples=500)
    assert interval is not None
    assert min(values) - 1e-12 <= interval.low <= interval.high <= max(values) + 1e-12
