from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.examples import ChatMessage, Example
from training.engine.data.reviewing import (
    Review,
    ReviewVerdict,
    apply_review,
    choose_for_review,
    read_review,
    write_review,
)
from training.engine.errors import DataInvalid

DIGEST = "ab" * 32


def example(name: str) -> Example:
    return Example(
        example_id=name,
        messages=(ChatMessage("user", f"ask {name}"), ChatMessage("assistant", f"answer {name}")),
        fields={"reference_source": "model"},
    )


@given(st.sets(st.text(min_size=1, max_size=8), max_size=40), st.integers(0, 9), st.integers(1, 50))
def test_a_selection_is_of_the_data_without_repeats_and_the_same_again(
    names: set[str], seed: int, num: int
) -> None:
    chosen = choose_for_review(names, seed=seed, digest=DIGEST, num_examples=num)
    assert len(set(chosen)) == len(chosen) == min(num, len(names))
    assert set(chosen) <= names
    assert chosen == choose_for_review(sorted(names), seed=seed, digest=DIGEST, num_examples=num)


def test_seed_and_data_decide() -> None:
    names = [str(number) for number in range(200)]
    first = choose_for_review(names, seed=0, digest=DIGEST, num_examples=20)
    assert first != choose_for_review(names, seed=1, digest=DIGEST, num_examples=20)
    assert first != choose_for_review(names, seed=0, digest="cd" * 32, num_examples=20)


def test_verdicts_change_the_data() -> None:
    examples = [example(name) for name in "abcd"]
    verdicts = {
        "a": ReviewVerdict(verdict="good"),
        "b": ReviewVerdict(verdict="bad"),
        "c": ReviewVerdict(verdict="fix", fixed_answer="better"),
    }
    kept = list(apply_review(examples, verdicts, reviewer="Ann", confirms=True))
    assert [item.example_id for item in kept] == ["a", "c", "d"]
    assert kept[0].fields == {"reference_source": "model", "confirmed_by": "Ann"}
    assert kept[1].answer == "better"
    assert kept[1].fields == {"reference_source": "person", "confirmed_by": "Ann"}
    assert kept[2] == examples[3]


def test_without_confirmation_only_a_fixed_answer_is_a_persons() -> None:
    verdicts = {
        "a": ReviewVerdict(verdict="good"),
        "c": ReviewVerdict(verdict="fix", fixed_answer="better"),
    }
    kept = list(apply_review([example("a"), example("c")], verdicts, reviewer="Ann", confirms=False))
    assert kept[0] == example("a")
    assert kept[1].fields == {"reference_source": "person"}


def test_a_review_reads_back(tmp_path: Path) -> None:
    review = Review(data_sha256=DIGEST, seed=3, example_ids=("a", "b"), reviewer="Ann")
    review = review.with_verdict("a", ReviewVerdict(verdict="fix", fixed_answer="好"))
    write_review(tmp_path / "review.json", review)
    again = read_review(tmp_path / "review.json")
    assert again == review
    assert again.open_ids == ("b",)
    assert again.count() == {"good": 0, "bad": 0, "fix": 1}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema_version": 2}', '{"verdicts": {"a": {}}}'])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "review.json"
    path.write_text(content)
    with pytest.raises(DataInvalid) as caught:
        read_review(path)
    assert caught.value.code == "review-unreadable"
