import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.cleaning.steps import Cleaned, clean, make_example
from training.engine.data.cleaning.lengths import KIND, LengthHistogram
from training.engine.errors import ConfigInvalid


def count_words(text: str) -> int:
    return len(text.split())


def cut(lengths: list[int], **parameters: Any) -> Cleaned:
    # One user message of one character, so that the whole example has the length.
    return clean(KIND, [make_example("q", "a" * (length - 1)) for length in lengths], **parameters)


def test_longest_hundredth_goes_by_default() -> None:
    # Nearest rank by hand: ceil(0.99 * 200) = 198, so lengths above the 198th go: 199 and 200.
    cleaned = cut(list(range(1, 201)))
    assert cleaned.reasons[-3:] == [(), ("too-long",), ("too-long",)]
    assert cleaned.num_dropped == 2
    assert cleaned.outcomes[-1].detail == "200 characters, at most 198"
    facts = cleaned.facts
    assert (facts["shortest_kept"], facts["longest_kept"]) == (1, 198)
    assert (facts["num_too_short"], facts["num_too_long"]) == (0, 2)
    # Places ceil(q * 200): 2, 10, 50, 100, 150, 190, 198, 200.
    assert facts["lengths"]["characters"]["example"]["quantiles"] == {
        **{"p1": 2, "p5": 10, "p25": 50, "p50": 100},
        **{"p75": 150, "p95": 190, "p99": 198, "max": 200},
    }
    # Fewer than a hundred have no hundredth.
    assert cut(list(range(1, 100))).num_dropped == 0


def test_both_tails_and_bounds() -> None:
    lengths = list(range(1, 101))
    cleaned = cut(lengths, lower=0.05, upper=0.9)
    # Places 5 and 90: 1-4 are too short, 91-100 too long.
    assert [cleaned.facts[name] for name in ("num_too_short", "num_too_long")] == [4, 10]
    cleaned = cut(lengths, upper=1.0, min_length=3, max_length=50)
    assert [cleaned.facts[name] for name in ("num_too_short", "num_too_long")] == [2, 50]
    assert cut(lengths, upper=1.0).num_dropped == 0


def test_equal_lengths_are_no_tail() -> None:
    assert cut([7] * 500, lower=0.5, upper=0.6).num_dropped == 0


def test_parts_and_units() -> None:
    examples = [make_example("one two three", "four five", system="six"), make_example("a", None)]
    cleaned = clean(KIND, examples, count_tokens=count_words)
    quantiles = {
        part: lengths["quantiles"]["max"] for part, lengths in cleaned.facts["lengths"]["tokens"].items()
    }
    assert quantiles == {"input": 3, "answer": 2, "example": 6}
    assert cleaned.facts["unit"] == "tokens"
    by_answer = clean(KIND, examples, count_tokens=count_words, part="answer", min_length=1)
    assert by_answer.reasons == [(), ("too-short",)]
    assert by_answer.outcomes[1].detail == "0 tokens, at least 1"
    characters = clean(KIND, examples, count_tokens=count_words, unit="characters", max_length=20)
    assert characters.reasons == [("too-long",), ()]


def test_suggested_length_is_a_multiple_of_64_over_the_95th_percentile() -> None:
    examples = [
        make_example("w", " ".join(["w"] * (length - 1))) for length in (*[60] * 90, *[100] * 6, *[300] * 4)
    ]
    facts = clean(KIND, examples, count_tokens=count_words).facts
    # Place 95 of 100 has 100 tokens; the next multiple of 64 is 128, which 4 exceed.
    assert facts["suggested_max_length_tokens"] == 128
    assert facts["num_longer_than_suggested"] == 4
    exact = [make_example("w", " ".join(["w"] * 63))] * 10
    assert clean(KIND, exact, count_tokens=count_words).facts["suggested_max_length_tokens"] == 64


def test_without_tokenizer_tokens_are_not_cut() -> None:
    cleaned = cut(list(range(1, 201)), unit="tokens")
    assert cleaned.num_dropped == 0
    assert cleaned.facts["is_cut"] is False
    assert cleaned.facts["suggested_max_length_tokens"] is None
    assert cleaned.facts["why_no_tokens"] == "no tokenizer was given"


def test_empty_stream() -> None:
    facts = clean(KIND, [], count_tokens=count_words).facts
    assert facts["lengths"]["tokens"]["example"]["quantiles"]["max"] is None


@pytest.mark.parametrize("parameters", [{"lower": 0.9, "upper": 0.5}, {"min_length": 9, "max_length": 5}])
def test_crossed_bounds_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ConfigInvalid, match="must be below"):
        cut([1], **parameters)


def test_histogram_by_hand() -> None:
    histogram = LengthHistogram()
    for length in (0, 1, 5, 5, 6, 17):
        histogram.add(length)
    assert histogram.to_json() == {
        "edges": [0, 1, 2, 3, 4, 6, 8, 12, 16, 24],
        "counts": [1, 1, 0, 0, 2, 1, 0, 0, 1],
    }
    assert LengthHistogram().to_json() == {"edges": [0, 1], "counts": [0]}


@given(st.lists(st.integers(0, 100_000), max_size=30))
def test_histogram_counts_every_length_in_its_bin(lengths: list[int]) -> None:
    histogram = LengthHistogram()
    for length in lengths:
        histogram.add(length)
    drawn = histogram.to_json()
    edges, counts = drawn["edges"], drawn["counts"]
    assert edges == sorted(set(edges))
    for low, high, number in zip(edges[:-1], edges[1:], counts, strict=True):
        assert number == sum(low <= length < high for length in lengths)
    assert sum(counts) == len(lengths)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.floats(0, 0.4), st.floats(0.5, 1))
def test_no_more_goes_than_the_quantiles_say(lengths: list[int], lower: float, upper: float) -> None:
    facts = cut(lengths, lower=lower, upper=upper).facts
    assert facts["num_too_short"] <= lower * len(lengths)
    assert facts["num_too_long"] <= math.ceil((1 - upper) * len(lengths) + 1e-6)
