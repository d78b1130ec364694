# ruff: noqa: RUF001 (full-width characters are what is tested)
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.shingles import SimilarSetIndex, jaccard, make_shingles, normalise

SETS = st.lists(st.frozensets(st.sampled_from("abcdefghijklmno"), max_size=12), max_size=25)


@given(
    SETS,
    st.frozensets(st.sampled_from("abcdefghijklmno"), max_size=12),
    st.sampled_from([0.3, 0.5, 0.85, 1.0]),
)
def test_index_finds_what_brute_force_finds(
    sets: list[frozenset[str]], query: frozenset[str], threshold: float
) -> None:
    expected = [(i, jaccard(query, item)) for i, item in enumerate(sets) if jaccard(query, item) >= threshold]
    assert list(SimilarSetIndex(sets, threshold=threshold).find(query)) == expected


def test_words_and_characters() -> None:
    assert make_shingles("the cat sat down") == {"wthe cat sat", "wcat sat down"}
    assert make_shingles("my cat") == {"wmy cat"}
    assert make_shingles("我的订单没有到") == {"c我的订单没", "c的订单没有", "c订单没有到"}
    assert make_shingles("?!") == {"c?!"}
    assert make_shingles("") == frozenset()


def test_normalise_folds_width_case_and_space() -> None:
    assert normalise("  Ｈello\n\tWORLD　１２ ") == "hello world 12"


def test_jaccard_by_hand() -> None:
    assert jaccard(frozenset("abc"), frozenset("bcd")) == pytest.approx(0.5)  # 2 of 4
    assert jaccard(frozenset(), frozenset()) == 0.0
