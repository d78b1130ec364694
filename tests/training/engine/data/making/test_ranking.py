import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.making.ranking import (
    Candidate,
    measure_agreements,
    rank_candidates,
    tabulate_overlaps,
)


def candidates(num: int) -> list[Candidate]:
    return [
        Candidate(number=n, teacher="t", variant=n, prompt_sha256="", text=f"text {n}")
        for n in range(1, num + 1)
    ]


def numbers(table: list[list[float]], **judge: object) -> list[int]:
    made = candidates(len(table))
    return [item.candidate.number for item in rank_candidates(made, measure_agreements(table), **judge)]  # type: ignore[arg-type]


def test_mean_agreement_with_the_others() -> None:
    # By hand: (1/2 + 1/2) / 2, (1/2 + 1) / 2, (1/2 + 1) / 2; the earlier of two equal ones comes first.
    table = [[1, 0.5, 0.5], [0.5, 1, 1], [0.5, 1, 1]]
    assert measure_agreements(table) == (0.5, 0.75, 0.75)
    assert numbers(table) == [2, 3, 1]


def test_one_candidate_has_nothing_to_agree_with() -> None:
    (only,) = rank_candidates(candidates(1), measure_agreements([[1.0]]))
    assert (only.agreement, only.judge_score, only.score) == (None, None, 0.0)
    assert rank_candidates([], ()) == ()


def test_the_judge_has_its_weight() -> None:
    table = [[1, 0.5, 0.5], [0.5, 1, 1], [0.5, 1, 1]]
    judged = (1.0, 0.5, 0.0)
    # Scores by hand at weight 0.5: 0.75, 0.625, 0.375; at 0.1: 0.55, 0.725, 0.675.
    assert numbers(table, judge_scores=judged, judge_weight=0.5) == [1, 2, 3]
    assert numbers(table, judge_scores=judged, judge_weight=0.1) == [2, 3, 1]


def test_overlap_by_hand() -> None:
    texts = ["a b c d", "A  B c e", "x", "x"]
    table = tabulate_overlaps(texts)
    # Shingles abc, bcd | abc, bce: 1 of 3. Terms a b c d | a b c e: 3 of 5. Mean (1/3 + 3/5) / 2 = 7/15.
    assert table[0][1] == pytest.approx(7 / 15, abs=1e-12)
    assert table[0][2] == 0.0
    assert table[2][3] == 1.0


def test_overlap_of_chinese_by_hand() -> None:
    table = tabulate_overlaps(["退款已完成", "退款已处理"])
    # One shingle of five characters each, not equal: 0. Characters 退款已完成 | 退款已处理: 3 of 7.
    assert table[0][1] == pytest.approx(3 / 14, abs=1e-12)


@given(st.lists(st.text("ab 退款.", max_size=12), min_size=1, max_size=4))
def test_invariants(texts: list[str]) -> None:
    table = tabulate_overlaps(texts)
    assert all(0 <= value <= 1 for row in table for value in row)
    assert all(table[i][j] == table[j][i] for i in range(len(texts)) for j in range(len(texts)))
    assert sorted(numbers(table)) == list(range(1, len(texts) + 1))
