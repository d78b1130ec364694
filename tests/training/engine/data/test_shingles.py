# ruff: noqa: RUF001 (full-width characters are what is tested)
import pytest

from training.engine.data.shingles import jaccard, make_shingles, normalise


def test_words_and_characters() -> None:
    assert make_shingles("the cat sat down") == {"wthe cat sat", "wcat sat down"}
    assert make_shingles("my cat") == {"wmy cat"}
    assert make_shingles("我的订单没有到") == {"c我的订单没", "c的订单没有", "c订单没有到"}
    assert make_shingles("?!") == {"m?!"}
    assert make_shingles("") == frozenset()


def test_numbers_with_marks_are_one_word() -> None:
    assert make_shingles("1.5 kg at 10:30") == {"w1.5 kg at", "wkg at 10:30"}
    assert make_shingles("the end. next") == {"wthe end next"}
    assert make_shingles("价格1.5万") != make_shingles("价格15万")


def test_kind_of_a_mixed_text() -> None:
    # 2 of 10 letters are Chinese: the smallest part that counts.
    assert make_shingles("abcdefgh订单") == {f"c{'abcdefgh订单'[i : i + 5]}" for i in range(6)}
    assert make_shingles("abcdefghi订") == {"wabcdefghi订"}


@pytest.mark.parametrize(
    ("left", "right"),
    [("好的，谢谢。", "好的,谢谢"), ("Where's MY order?!", "where s my order"), ("订单 １２３", "订单123")],
)
def test_punctuation_width_and_case_do_not_count(left: str, right: str) -> None:
    assert jaccard(make_shingles(normalise(left)), make_shingles(normalise(right))) == 1.0


def test_short_texts_are_similar_to_themselves_only() -> None:
    # 3 shingles of 3 words; the changed middle word is in all of them.
    left, right = make_shingles("one two three four five"), make_shingles("one two other four five")
    assert jaccard(left, right) == 0.0


def test_normalise_folds_width_case_and_space() -> None:
    assert normalise("  Ｈello\n\tWORLD　１２ ") == "hello world 12"


def test_jaccard_by_hand() -> None:
    assert jaccard(frozenset("abc"), frozenset("bcd")) == pytest.approx(0.5)  # 2 of 4
    assert jaccard(frozenset(), frozenset()) == 0.0


def test_hostile_text_takes_linear_time() -> None:
    assert len(make_shingles("1." * 100_000)) == 1
    assert len(make_shingles("1:1-" * 50_000 + "!")) == 1
