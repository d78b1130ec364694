from dataclasses import replace
from typing import Any

import pytest

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
from training.engine.chat import IGNORED_LABEL, DroppedExample
from training.engine.data.examples import ChatMessage, Example
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.checks import texts
from training.engine.preflight.token_rows import TokenRow


def with_answers(answers: list[str]) -> Any:
    examples = make_examples(len(answers))
    changed = [example.with_answer(answer) for example, answer in zip(examples, answers, strict=True)]
    return replace(view_of(), examples=changed)


def test_healthy_data_pass() -> None:
    view = view_of(make_examples(120))
    for check in (
        texts.check_empty_answers,
        texts.check_equal_answers,
        texts.check_copies,
        texts.check_answers_whole,
        texts.check_answers_finished,
        texts.check_alignment,
        texts.check_dropped,
    ):
        assert check(view).status is PASSED, check


@pytest.mark.parametrize(("num_empty", "status"), [(1, FAILED), (0, PASSED)])
def test_empty_answers(num_empty: int, status: Any) -> None:
    result = texts.check_empty_answers(with_answers([" \n"] * num_empty + ["fine"] * 20))
    assert result.status is status


def test_empty_answers_of_rows_from_elsewhere() -> None:
    def only_end(row: TokenRow) -> TokenRow:
        kept = row.num_prompt_tokens
        return TokenRow(
            row.example_id,
            (*row.input_ids[:kept], row.input_ids[-1]),
            (*[IGNORED_LABEL] * kept, row.labels[-1]),
        )

    assert texts.check_empty_answers(foreign(only_end)).status is FAILED
    assert texts.check_empty_answers(foreign()).status is PASSED


def test_one_answer_for_all() -> None:
    result = texts.check_equal_answers(with_answers(["same"] * 20))
    assert (result.status, result.row) == (FAILED, HandbookRow.LOSS_NEAR_ZERO)
    assert texts.check_equal_answers(with_answers(["same"] * 19 + ["other"])).status is PASSED
    # Few examples may agree by chance.
    assert texts.check_equal_answers(with_answers(["same"] * 4)).status is PASSED


@pytest.mark.parametrize(
    ("num_copies", "status"),
    # Of 20 examples: 11 copies are 55 %, 5 are 25 %, 4 are 20 %.
    [(11, FAILED), (5, WARNING), (4, PASSED)],
)
def test_copies(num_copies: int, status: Any) -> None:
    examples = list(make_examples(20 - num_copies))
    first = examples[0]
    examples += [Example(example_id=f"copy-{i}", messages=first.messages) for i in range(num_copies)]
    result = texts.check_copies(replace(view_of(), examples=examples))
    assert result.status is status
    assert result.row in (None, HandbookRow.REPETITION)
    rows = [TokenRow(str(i), view_of().rows[0].input_ids, view_of().rows[0].labels) for i in range(5)]
    assert texts.check_copies(replace(foreign(), rows=rows)).status is FAILED


def test_an_answer_in_two_turns() -> None:
    def divide(example: Example) -> Example:
        answer = example.answer or ""
        parts = (ChatMessage("assistant", answer[:9]), ChatMessage("assistant", answer[9:]))
        return Example(example_id=example.example_id, messages=(*example.messages[:-1], *parts))

    result = texts.check_answers_whole(
        replace(view_of(), examples=[divide(example) for example in make_examples()])
    )
    assert (result.status, result.row) == (FAILED, HandbookRow.WRONG_DATA)
    assert texts.check_answers_whole(foreign()).status is SKIPPED


def test_answers_that_end_in_their_middle() -> None:
    cut = [(example.answer or "")[:-9] for example in make_examples(40)]
    result = texts.check_answers_finished(with_answers(cut))
    assert (result.status, result.row) == (FAILED, HandbookRow.NEVER_STOPS)
    whole = [example.answer or "" for example in make_examples(200)]
    # One of 200 is below 1 %.
    assert texts.check_answers_finished(with_answers([whole[0][:-9], *whole[1:]])).status is WARNING


def test_answers_a_row_away_are_a_warning() -> None:
    answers = [example.answer or "" for example in make_examples(120)]
    result = texts.check_alignment(with_answers([answers[-1], *answers[:-1]]))
    assert (result.status, result.row) == (WARNING, HandbookRow.OFF_TOPIC)


@pytest.mark.parametrize(
    ("num_dropped", "status"),
    # Beside 40 rows: 41 are 51 %, 3 are 7 %, 2 are 4.8 %.
    [(41, FAILED), (3, WARNING), (2, PASSED)],
)
def test_dropped_examples(num_dropped: int, status: Any) -> None:
    reason = "3000 tokens are more than max_length_tokens (2048)"
    dropped = [DroppedExample(f"d{i}", reason) for i in range(num_dropped)]
    result = texts.check_dropped(replace(view_of(), dropped=dropped))
    assert result.status is status
    assert result.row in (None, HandbookRow.LONG_INPUT_COLLAPSE)


def test_dropped_examples_for_another_reason() -> None:
    dropped = [DroppedExample("d", "its answer holds the end token")] * 10
    assert texts.check_dropped(replace(view_of(), dropped=dropped)).row is HandbookRow.WRONG_DATA


def test_a_hostile_reason_is_escaped() -> None:
    dropped = [DroppedExample("d", "\x1b[2J")] * 10
    assert "\x1b" not in texts.check_dropped(replace(view_of(), dropped=dropped)).message


def test_make_example_is_what_it_says() -> None:
    assert make_example("a", "q", "x", system=None).messages[0].role == "user"
