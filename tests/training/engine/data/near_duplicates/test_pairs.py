# ruff: noqa: RUF001 (full-width characters are what is tested)
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.near_duplicates.brute_force import find_all_pairs
from training.engine.data.near_duplicates import (
    Pair,
    SimilarTextIndex,
    find_near_duplicate_pairs,
    join,
)

ROOT = Path(__file__).parents[5]
SHARED = Path(os.environ.get("ASSAY_SHARED", ROOT.parent / "shared"))
WORDS = st.lists(st.sampled_from("abcdef"), max_size=9).map(" ".join)
LETTERS = st.text(st.sampled_from("订单没有到，a"), max_size=12)
TEXTS = st.lists(WORDS | LETTERS, max_size=25)
THRESHOLDS = st.sampled_from([0.1, 0.3, 0.5, 0.8, 0.85, 1.0])


def as_tuples(pairs: list[Pair]) -> list[tuple[int, int, float]]:
    return [(pair.left, pair.right, pair.similarity) for pair in pairs]


@given(TEXTS, THRESHOLDS)
def test_join_is_brute_force(texts: list[str], threshold: float) -> None:
    found = as_tuples(list(find_near_duplicate_pairs(iter(texts), threshold=threshold)))
    assert found == find_all_pairs(texts, threshold)


@given(TEXTS, TEXTS, THRESHOLDS)
def test_index_is_brute_force(held: list[str], asked: list[str], threshold: float) -> None:
    index = SimilarTextIndex(held, threshold=threshold)
    expected = [
        (left, right - len(asked), similarity)
        for left, right, similarity in find_all_pairs([*asked, *held], threshold)
        if left < len(asked) <= right
    ]
    assert as_tuples(list(index.find(asked))) == expected


def read_real_texts() -> list[str]:
    texts = []
    # Without the shared data the ticket example has real texts too, but fewer.
    files = sorted(SHARED.glob("data/*/*.jsonl")) or sorted((ROOT / "examples/tickets").glob("*.jsonl"))
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            texts += [item["content"] for item in row.get("messages", ()) if item["role"] == "user"]
            texts += [row["text"]] if "text" in row else []
    return texts


def make_synthetic_texts(generator: random.Random) -> list[str]:
    words = [f"word{i}" for i in range(300)]
    english = [" ".join(generator.choices(words, k=generator.randint(1, 40))) for _ in range(3000)]
    letters = [chr(0x4E00 + i) for i in range(400)]
    return english + ["".join(generator.choices(letters, k=generator.randint(1, 50))) for _ in range(1000)]


def plant(text: str, generator: random.Random) -> str:
    parts, separator = (text.split(" "), " ") if text.isascii() else (list(text), "")
    for _ in range(generator.randint(0, 3)):
        parts[generator.randrange(len(parts))] = "x"
    return separator.join(parts) + generator.choice(["", "。", " !"])


@pytest.mark.parametrize("source", ["real", "synthetic"])
def test_nothing_is_missed_among_5000(source: str) -> None:
    generator = random.Random(11)
    texts = read_real_texts() if source == "real" else make_synthetic_texts(generator)
    texts = generator.choices(texts, k=4000)
    # Two utterances in a row are long enough to be near duplicates with two words changed.
    texts = [f"{text} {generator.choice(texts)}" if i % 2 else text for i, text in enumerate(texts)]
    texts += [plant(generator.choice(texts), generator) for _ in range(1000)]
    found = as_tuples(list(find_near_duplicate_pairs(texts, threshold=0.85)))
    # Recall 1 and precision 1; asked for are 0.99 and 1.
    assert found == find_all_pairs(texts, 0.85)
    assert len(found) > 300


def test_pairs_by_hand() -> None:
    words = [f"w{i}" for i in range(40)]
    texts = [" ".join(words), "", "好的，谢谢。", " ".join([*words[:-1], "other"]), "好的,谢谢", ""]
    # 38 shingles each; one changed last word leaves 37 shared of 39. Empty texts are similar to nothing.
    assert as_tuples(list(find_near_duplicate_pairs(texts, threshold=0.85))) == [(0, 3, 37 / 39), (2, 4, 1.0)]


def test_threshold_is_met_exactly() -> None:
    # 18 shingles, of which 17 are shared of 20 in all: 0.85.
    words = [f"w{i}" for i in range(19)]
    texts = [" ".join([*words, "x"]), " ".join(["a", "b", *words])]
    left, right = ({" ".join(t.split()[i : i + 3]) for i in range(len(t.split()) - 2)} for t in texts)
    assert (len(left & right), len(left | right)) == (17, 20)
    assert len(list(find_near_duplicate_pairs(texts, threshold=0.85))) == 1
    assert not list(find_near_duplicate_pairs(texts, threshold=0.851))


def test_a_shared_boilerplate_is_not_quadratic(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 texts of 118 common and 30 own shingles have 12.5 million pairs; hardly any may be compared."""
    num_compared = 0

    def count(self: join.PreparedJoin, candidates: join.Candidates) -> join.Matches:
        nonlocal num_compared
        num_compared += len(candidates.left)
        return original(self, candidates)

    original = join.PreparedJoin.verify
    monkeypatch.setattr(join.PreparedJoin, "verify", count)
    shared = " ".join(f"clause{i}" for i in range(120))
    texts = [f"{shared} {' '.join(f'w{i}x{j}' for j in range(30))}" for i in range(5000)]
    assert not list(find_near_duplicate_pairs(texts, threshold=0.85))
    assert num_compared < 1000


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.01, float("nan")])
def test_threshold_out_of_range(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        SimilarTextIndex([], threshold=threshold)


PROGRAM = """
from training.engine.data.near_duplicates import find_near_duplicate_pairs
texts = [f"order {i % 7} has not come to me yet at all 订单{i % 5}没有收到请尽快处理" for i in range(40)]
print(list(find_near_duplicate_pairs(texts, threshold=0.5)))
"""


def test_hash_randomisation_does_not_matter() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000
