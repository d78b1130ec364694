from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.examples import ChatMessage, Example
from training.engine.data.making.distillation import DistilledInput
from training.engine.data.making.ranking import Candidate, RankedCandidate
from training.engine.data.making.review_pairs import pairs_for_people


def distilled(example_id: str, *texts: str, agreement: float | None = 0.5) -> DistilledInput:
    source = Example(example_id=example_id, messages=(ChatMessage("user", f"input {example_id}"),))
    ranked = tuple(
        RankedCandidate(
            candidate=Candidate(number=number, teacher="t", variant=1, prompt_sha256="", text=text),
            agreement=agreement if number == 1 else 0.1,
            judge_score=None,
            score=0.0,
        )
        for number, text in enumerate(texts, start=1)
    )
    return DistilledInput(source=source, example=source, ranked=ranked)


def choose(
    items: list[DistilledInput], num_lowest: int, num_control: int, seed: int = 0
) -> list[tuple[str, str]]:
    pairs = pairs_for_people(items, num_lowest=num_lowest, num_control=num_control, seed=seed)
    return [(pair.part, pair.example_id) for pair in pairs]


def test_the_lowest_agreement_comes_first() -> None:
    items = [
        distilled("a", "x", agreement=0.9),
        distilled("b", "x", agreement=0.2),
        distilled("c", "x", agreement=None),
        distilled("d", "x", agreement=0.2),
        distilled("e", "x", agreement=0.1),
    ]
    assert choose(items, 4, 0) == [("lowest", "c"), ("lowest", "e"), ("lowest", "b"), ("lowest", "d")]
    assert choose(items, 3, 9) == [
        ("lowest", "c"), ("lowest", "e"), ("lowest", "b"), ("control", "a"), ("control", "d"),
    ]  # fmt: skip


def test_top_and_bottom_only() -> None:
    (pair,) = pairs_for_people(
        [distilled("a", "top", "middle", "end", "top")], num_lowest=1, num_control=0, seed=0
    )
    assert pair.bottom is not None
    assert (pair.input_text, pair.top.text, pair.bottom.text, pair.bottom.candidate) == (
        "input a",
        "top",
        "end",
        3,
    )
    assert pair.to_json()["bottom"] == {"text": "end", "teacher": "t", "candidate": 3, "agreement": 0.1}
    (same,) = pairs_for_people([distilled("a", "top", "top")], num_lowest=1, num_control=0, seed=0)
    assert same.bottom is None


def test_unanswered_inputs_are_passed_over() -> None:
    item = distilled("a", "x")
    unanswered = DistilledInput(source=item.source, reasons=("low-agreement",), ranked=item.ranked)
    assert choose([unanswered], 5, 5) == []


def test_the_control_part_is_drawn_by_the_seed() -> None:
    items = [distilled(str(number), "x", agreement=number / 100) for number in range(100)]
    first = choose(items, 10, 20, seed=1)
    assert first == choose(items, 10, 20, seed=1)
    assert first[:10] == choose(items, 10, 20, seed=2)[:10]
    assert first[10:] != choose(items, 10, 20, seed=2)[10:]
    places = {pair.is_top_first for pair in pairs_for_people(items, num_lowest=0, num_control=30, seed=1)}
    assert places == {True, False}


@given(
    st.lists(st.none() | st.integers(0, 10), max_size=30),
    st.integers(0, 8),
    st.integers(0, 8),
    st.integers(0, 3),
)
def test_sizes_and_no_overlap(agreements: list[int | None], lowest: int, control: int, seed: int) -> None:
    items = [
        distilled(str(number), "x", agreement=None if value is None else value / 10)
        for number, value in enumerate(agreements)
    ]
    chosen = choose(items, lowest, control, seed)
    assert len({example_id for _, example_id in chosen}) == len(chosen)
    num_lowest = min(lowest, len(items))
    assert [part for part, _ in chosen] == ["lowest"] * num_lowest + ["control"] * min(
        control, len(items) - num_lowest
    )
