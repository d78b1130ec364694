# ruff: noqa: RUF001 (full-width characters are what is tested)
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.near_duplicates import collect_sets, shingle_sets
from training.engine.data.near_duplicates.shingle_sets import split_by_total
from training.engine.data.shingles import make_shingles, normalise

TEXTS = st.lists(st.text(st.sampled_from("ab 订单没，.1\u0000\ud800"), max_size=14), max_size=20)


@given(TEXTS)
def test_sets_are_those_of_the_definition(texts: list[str]) -> None:
    sets = collect_sets(texts)
    numbers: dict[str, int] = {}
    for row, text in enumerate(texts):
        shingles = make_shingles(normalise(text))
        keys = sets.keys[sets.starts[row] : sets.starts[row + 1]]
        assert len(keys) == len(shingles)
        assert (keys[1:] > keys[:-1]).all()
        # Equal sets of texts are equal sets of numbers, different ones different ones.
        name = "\x00".join(sorted(shingles))
        assert numbers.setdefault(name, hash(keys.tobytes())) == hash(keys.tobytes())
    assert len(set(numbers.values())) == len(numbers)


@given(TEXTS)
def test_sketches_differ_in_at_most_as_many_bits_as_the_sets(texts: list[str]) -> None:
    sets = collect_sets(texts)
    shingles = [make_shingles(normalise(text)) for text in texts]
    for left in range(len(texts)):
        for right in range(left):
            bits = int(np.bitwise_count(sets.sketches[left] ^ sets.sketches[right]).sum())
            assert bits <= len(shingles[left] ^ shingles[right])


def test_rare_shingles_come_first() -> None:
    sets = collect_sets(["a b c d"] * 50 + ["a b c x"])
    # Shared 51 times is the first shingle, once the second.
    last = sets.keys[sets.starts[50] :].tolist()
    assert last[1] in sets.keys[:2].tolist()
    assert last[0] not in sets.keys[:2].tolist()


def test_sets_made_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"one two three four {i} five six" for i in range(30)]
    whole = collect_sets(texts)
    monkeypatch.setattr(shingle_sets, "_SHINGLES_AT_A_TIME", 7)
    parts = collect_sets(texts)
    assert parts.keys.tolist() == whole.keys.tolist()
    assert parts.starts.tolist() == whole.starts.tolist()
    assert parts.sketches.tolist() == whole.sketches.tolist()


@given(st.lists(st.integers(0, 30), max_size=20))
def test_runs_cover_everything(sizes: list[int]) -> None:
    runs = split_by_total(np.array(sizes, dtype=np.int64), 10)
    assert [number for run in runs for number in range(run.start, run.stop)] == list(range(len(sizes)))


def test_nothing() -> None:
    assert len(collect_sets([])) == 0
    assert collect_sets(["", " "]).starts.tolist() == [0, 0, 0]
