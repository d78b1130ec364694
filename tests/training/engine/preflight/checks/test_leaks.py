from dataclasses import replace

from tests.training.engine.preflight.views import (
    FAILED,
    PASSED,
    SKIPPED,
    WARNING,
    foreign,
    make_example,
    make_examples,
    view_of,
)
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.checks.leaks import check_leaks

OTHERS = make_examples(100, seed=5, prefix="h")


def test_held_out_examples_of_their_own_pass() -> None:
    assert check_leaks(replace(view_of(), held_out=OTHERS)).status is PASSED
    assert check_leaks(view_of()).status is SKIPPED


def test_training_examples_in_the_held_out_part_are_found() -> None:
    for count, status in ((6, FAILED), (5, WARNING)):  # of 100: allowed are 5 %
        held_out = [*make_examples(count), *OTHERS[count:]]
        result = check_leaks(replace(view_of(), held_out=held_out))
        assert (result.status, result.row) == (status, HandbookRow.LOSS_NEAR_ZERO)
        assert len(result.example_ids) == 5


def test_a_nearly_equal_input_counts() -> None:
    question = " ".join(f"word{i}" for i in range(40))
    view = view_of([*make_examples(), make_example("long", question, "a")])
    held_out = [make_example("near", f"{question} please", "b")]
    assert check_leaks(replace(view, held_out=held_out)).example_ids == ("near",)


def test_rows_from_elsewhere_are_compared_by_their_ids() -> None:
    view = foreign()
    assert check_leaks(replace(view, held_out_rows=view.rows[:3])).status is FAILED
    assert check_leaks(replace(view, held_out_rows=view_of(OTHERS).rows)).status is PASSED
