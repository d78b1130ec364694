import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.near_duplicates.brute_force import find_all_pairs
from training.engine.data.near_duplicates import FirstsFinder, collect_sets, firsts

WORDS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8).map(" ".join)
ROWS = st.lists(st.tuples(WORDS, WORDS, st.integers(0, 1)), max_size=30)


def keep_firsts(rows: list[tuple[str, str, int]], threshold: float) -> list[int]:
    """The definition, pair by pair."""
    similar = [
        {(left, right) for left, right, _ in find_all_pairs([row[facet] for row in rows], threshold)}
        for facet in (0, 1)
    ]
    kept: list[int] = []
    result = []
    for number, row in enumerate(rows):
        found = [
            other for other in kept if (other, number) in similar[0] & similar[1] and rows[other][2] == row[2]
        ]
        result.append(found[0] if found else number)
        if not found:
            kept.append(number)
    return result


def find(rows: list[tuple[str, str, int]], threshold: float) -> firsts.Firsts:
    facets = [collect_sets([row[facet] for row in rows]) for facet in (0, 1)]
    labels = np.array([row[2] for row in rows], dtype=np.int64)
    return FirstsFinder(facets, threshold=threshold, labels=labels).find(np.arange(len(rows)))


@given(ROWS, st.sampled_from([0.3, 0.5, 0.85]))
def test_firsts_are_those_of_the_definition(rows: list[tuple[str, str, int]], threshold: float) -> None:
    assert find(rows, threshold).first.tolist() == keep_firsts(rows, threshold)


@given(rows=ROWS, threshold=st.sampled_from([0.3, 0.5, 0.85]))
def test_halving_changes_nothing(rows: list[tuple[str, str, int]], threshold: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(firsts, "_MIN_DIRECT_CANDIDATES", 0)
        patch.setattr(firsts, "_DIRECT_CANDIDATES_PER_ROW", 0)
        patch.setattr(firsts, "_MAX_LEAF", 2)
        found = find(rows, threshold)
    assert found.first.tolist() == keep_firsts(rows, threshold)
    similarity = {(a, b): s for a, b, s in find_all_pairs([row[0] for row in rows], threshold)}
    for number, first in enumerate(found.first.tolist()):
        assert found.similarity[number] == (1.0 if first == number else similarity[first, number])


def test_no_chains() -> None:
    # Each text shares 9 of 11 shingles with the next (0.82) and 8 of 12 with the one after (0.67).
    words = [f"w{i}" for i in range(20)]
    rows = [(" ".join(words[i : i + 12]), "same", 0) for i in range(3)]
    assert find(rows, 0.8).first.tolist() == [0, 0, 2]


def test_a_large_cluster() -> None:
    boilerplate = " ".join(f"clause{i}" for i in range(60))
    rows = [(f"{boilerplate} number{i}", "same", 0) for i in range(3000)]
    assert set(find(rows, 0.85).first.tolist()) == {0}
