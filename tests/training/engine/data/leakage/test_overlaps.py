from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.leakage.test_report import LONG, NEAR, example
from training.engine.data.leakage import LeakageMatrix, Overlap, find_leakage
from training.engine.data.shingles import jaccard, make_shingles, normalise

WORDS = st.lists(st.sampled_from("abc"), max_size=6).map(" ".join)
SETS = st.dictionaries(st.sampled_from(["holdout", "ood", "canary"]), st.lists(WORDS, max_size=8), min_size=2)


def find(training: list[str], sets: dict[str, list[str]]) -> LeakageMatrix:
    examples = {
        name: [example(f"{name}{i}", text) for i, text in enumerate(texts)] for name, texts in sets.items()
    }
    return find_leakage([example(f"t{i}", text) for i, text in enumerate(training)], examples).matrix


def counts(overlap: Overlap) -> tuple[int, int, int, int]:
    return overlap.num_exact, overlap.num_near, overlap.num_left, overlap.num_right


def count_by_hand(left: list[str], right: list[str]) -> tuple[int, int, int, int]:
    pairs = {
        (i, j): normalise(a) == normalise(b)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if jaccard(make_shingles(normalise(a)), make_shingles(normalise(b))) >= 0.85
    }
    num_exact = sum(pairs.values())
    return num_exact, len(pairs) - num_exact, len({i for i, _ in pairs}), len({j for _, j in pairs})


@given(st.lists(WORDS, max_size=8), SETS)
def test_counts_are_those_of_all_pairs(training: list[str], sets: dict[str, list[str]]) -> None:
    overlaps = find(training, sets).overlaps
    names = list(sets)
    expected = [("train", name) for name in names]
    expected += [(left, right) for i, left in enumerate(names) for right in names[i + 1 :]]
    assert [(item.left, item.right) for item in overlaps] == expected
    for item in overlaps:
        left = training if item.left == "train" else sets[item.left]
        assert counts(item) == count_by_hand(left, sets[item.right])
        assert len(item.pairs) == min(20, item.num_exact + item.num_near)


@given(SETS)
def test_counts_are_symmetric(sets: dict[str, list[str]]) -> None:
    there, back = find([], sets), find([], dict(reversed(sets.items())))
    for name in list(sets)[1:]:
        first = next(iter(sets))
        num_exact, num_near, num_left, num_right = counts(there.between(first, name))
        assert counts(back.between(name, first)) == (num_exact, num_near, num_right, num_left)


def test_most_similar_pairs_are_listed_first() -> None:
    matrix = find([NEAR] * 15 + [LONG] * 15, {"ood": [LONG]})
    overlap = matrix.between("train", "ood")
    assert counts(overlap) == (15, 15, 30, 1)
    assert [(pair.left_id, pair.kind) for pair in overlap.pairs] == [
        *((f"t{i}", "exact") for i in range(15, 30)),
        *((f"t{i}", "near") for i in range(5)),
    ]


def test_training_data_alone_overlap_with_nothing() -> None:
    report = find_leakage([example("t0", LONG), example("t1", LONG)], {})
    assert (report.pairs, report.matrix.overlaps, report.answers.num_memorisable) == ((), (), 0)
    [answers] = report.answers.sets
    assert answers.name == "train"
