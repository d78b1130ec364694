from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.making.distinct import find_distinct
from training.engine.data.shingles import jaccard, make_shingles, normalise


def test_the_first_stays() -> None:
    texts = ["a b c d", "A b c d!", "a b c e", "x y z", ""]
    assert find_distinct(texts, threshold=0.85) == [True, False, True, True, True]
    # "a b c d" and "a b c e" share 1 of 3 shingles.
    assert find_distinct(texts, threshold=0.3) == [True, False, False, True, True]
    assert find_distinct([], threshold=0.85) == []


@given(st.lists(st.text("ab ", max_size=12), max_size=12), st.sampled_from([0.3, 0.5, 0.85, 1.0]))
def test_as_by_comparison_of_all(texts: list[str], threshold: float) -> None:
    kept: list[frozenset[str]] = []
    expected = []
    for text in texts:
        shingles = make_shingles(normalise(text))
        expected.append(all(jaccard(shingles, other) < threshold for other in kept))
        kept += [shingles] if expected[-1] else []
    assert find_distinct(texts, threshold=threshold) == expected
