from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.near_duplicates.brute_force import find_all_pairs
from training.engine.data.near_duplicates import Components, collect_sets, unite_near_duplicates

WORDS = st.lists(st.sampled_from("abcdef"), max_size=8).map(" ".join)


def name_components(num: int, pairs: list[tuple[int, int, float]]) -> list[int]:
    names = list(range(num))
    for left, right, _ in pairs:
        old, new = max(names[left], names[right]), min(names[left], names[right])
        names = [new if name == old else name for name in names]
    return names


@given(st.lists(WORDS, max_size=30), st.sampled_from([0.3, 0.5, 0.85]))
def test_components_of_all_pairs(texts: list[str], threshold: float) -> None:
    components = Components(len(texts))
    unite_near_duplicates(components, collect_sets(texts), threshold=threshold)
    assert components.names().tolist() == name_components(len(texts), find_all_pairs(texts, threshold))


def test_a_large_cluster() -> None:
    boilerplate = " ".join(f"clause{i}" for i in range(60))
    texts = [f"{boilerplate} number{i}" for i in range(3000)] + ["something else", "something else!"]
    components = Components(len(texts))
    unite_near_duplicates(components, collect_sets(texts), threshold=0.85)
    assert set(components.names().tolist()) == {0, 3000}
