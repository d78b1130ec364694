import math

from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.distributions import MAX_BINS, LengthCounter


def counter_of(lengths: list[int]) -> LengthCounter:
    counter = LengthCounter()
    for length in lengths:
        counter.add(length)
    return counter


def test_quantiles_are_nearest_rank() -> None:
    # Ranks by hand: ceil(0.5 * 5) = 3rd, ceil(0.95 * 5) = 5th, ceil(0.2 * 5) = 1st of 15, 20, 35, 40, 50.
    counter = counter_of([50, 15, 40, 20, 35])
    assert [counter.quantile(fraction) for fraction in (0.5, 0.95, 0.2)] == [35, 50, 15]


def test_a_rank_that_is_whole_is_not_rounded_up() -> None:
    # 0.95 * 20 is 19.000000000000004 in floating point only if rounded badly: the 19th of 1..20 is 19.
    assert counter_of(list(range(1, 21))).quantile(0.95) == 19


def test_nothing_counted_has_no_quantile_and_an_empty_histogram() -> None:
    counter = LengthCounter()
    assert counter.quantile(0.5) is None
    assert counter.histogram().to_json() == {
        "edges": [0, 1],
        "counts": [0],
        "quantiles": {},
        "num_values": 0,
    }


def test_bins_of_small_lengths_are_single_values() -> None:
    histogram = counter_of([3, 3, 4, 6]).histogram()
    assert histogram.edges == (3, 4, 5, 6, 7)
    assert histogram.counts == (2, 1, 0, 1)
    assert histogram.quantiles["max"] == 6


@given(st.lists(st.integers(min_value=0, max_value=100_000), min_size=1, max_size=60), st.floats(0, 1))
def test_every_length_is_in_one_bin_and_the_quantile_is_one_of_them(
    lengths: list[int], fraction: float
) -> None:
    counter = counter_of(lengths)
    histogram = counter.histogram()
    assert sum(histogram.counts) == len(lengths) == histogram.num_values
    assert len(histogram.counts) <= MAX_BINS
    assert histogram.edges[0] <= min(lengths)
    assert max(lengths) < histogram.edges[-1]
    value = counter.quantile(fraction)
    assert value in lengths
    at_or_below = sum(length <= value for length in lengths)
    assert at_or_below >= math.floor(fraction * len(lengths))
