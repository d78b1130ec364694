from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.cleaning.steps import make_example
from training.engine.data.cleaning.report import MAX_SHOWN_PER_REASON, StepTally
from training.engine.data.cleaning.step import Outcome
from training.engine.data.examples import Example

BEFORE, AFTER = make_example("before"), make_example("after")
OUTCOMES = (
    Outcome.kept(BEFORE),
    Outcome.changed(AFTER, "a", "b"),
    Outcome.changed(AFTER, "b", "c"),
    Outcome.flagged(BEFORE, "c"),
    Outcome.dropped("d", detail="why"),
)


def show(example: Example) -> Example:
    return example


def tally_of(outcomes: list[Outcome]) -> StepTally:
    tally = StepTally(show)
    for outcome in outcomes:
        tally.add(BEFORE, outcome)
    return tally


def report_of(tally: StepTally) -> dict[str, object]:
    return tally.report(name="step", version=1, parameters={}, facts={}).to_json()


def test_counts_by_hand() -> None:
    report = report_of(tally_of([*OUTCOMES, *[Outcome.dropped("d")] * MAX_SHOWN_PER_REASON]))
    assert (report["num_in"], report["num_kept"], report["num_changed"]) == (8, 4, 2)
    assert (report["num_flagged"], report["num_dropped"]) == (1, 4)
    # Of d the first three are shown.
    assert report["reasons"] == {"d": 4, "b": 2, "c": 2, "a": 1}
    shown = report["shown"]
    assert isinstance(shown, list)
    assert [item["reasons"] for item in shown] == [
        ["a", "b"], ["b", "c"], ["c"], ["d"], ["d"], ["d"],
    ]  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(OUTCOMES), max_size=12), max_size=4))
def test_merged_tallies_are_one_tally_of_all(parts: list[list[Outcome]]) -> None:
    merged = StepTally(show)
    for part in parts:
        merged.merge(tally_of(part))
    whole = report_of(tally_of([outcome for part in parts for outcome in part]))
    assert report_of(merged) == whole
    # Reasons of equal number stand in the order in which they came.
    assert list(map(list, report_of(merged).items())) == list(map(list, whole.items()))
