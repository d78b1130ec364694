from dataclasses import replace
from typing import Any

import pytest

from tests.fixtures.models import smollm2_tokenizer
from tests.training.engine.preflight.views import (
    FAILED,
    PASSED,
    SKIPPED,
    WARNING,
    foreign,
    masked,
    troubles,
    view_of,
    with_labels,
)
from training.engine.chat import IGNORED_LABEL
from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.checks import masks
from training.engine.preflight.token_rows import TokenRow


def without_labels(row: TokenRow) -> TokenRow:
    return with_labels(row, [IGNORED_LABEL] * len(row.labels))


def trained_whole(row: TokenRow) -> TokenRow:
    return with_labels(row, row.input_ids)


def shifted(row: TokenRow) -> TokenRow:
    return with_labels(row, (*row.labels[1:], IGNORED_LABEL))


def without_end(row: TokenRow) -> TokenRow:
    return TokenRow(row.example_id, row.input_ids[:-1], row.labels[:-1])


def end_masked(row: TokenRow) -> TokenRow:
    return masked(row, len(row.labels) - 1)


def holed(row: TokenRow) -> TokenRow:
    return masked(row, row.num_prompt_tokens + 3)


def one_off(row: TokenRow) -> TokenRow:
    return masked(row, row.num_prompt_tokens)


@pytest.mark.parametrize(
    ("spoil", "code", "row"),
    [
        (without_labels, "trained-tokens", HandbookRow.WRONG_DATA),
        (trained_whole, "prompt-not-trained", HandbookRow.WRONG_DATA),
        (shifted, "labels-in-place", HandbookRow.WRONG_DATA),
        (without_end, "end-token-trained", HandbookRow.NEVER_STOPS),
        (end_masked, "end-token-trained", HandbookRow.NEVER_STOPS),
        # SmolLM2 pads with its end token.
        (end_masked, "padding-keeps-end-token", HandbookRow.NEVER_STOPS),
        (holed, "mask-without-holes", HandbookRow.WRONG_DATA),
    ],
)
def test_a_wrong_mask_is_found_in_rows_from_elsewhere(spoil: Any, code: str, row: HandbookRow) -> None:
    assert troubles(foreign(spoil))[code] == row
    assert code not in troubles(foreign())


def test_one_row_without_trained_tokens_is_enough() -> None:
    result = masks.check_trained_tokens(foreign(without_labels, count=1))
    assert (result.status, result.example_ids) == (FAILED, ("e0",))
    assert "1 of 40 rows" in result.message


def test_a_label_at_the_first_place_trains_nothing() -> None:
    # Nothing predicts the first token.
    row = TokenRow("a", (5, 6), (5, IGNORED_LABEL))
    assert not row.is_trained


@pytest.mark.parametrize("spoil", [one_off, holed, without_end, trained_whole])
def test_the_trained_text_must_be_the_answer(spoil: Any) -> None:
    view = view_of()
    assert masks.check_trained_text(view).status is PASSED
    spoilt = replace(view, rows=[spoil(view.rows[0]), *view.rows[1:]])
    result = masks.check_trained_text(spoilt)
    assert (result.status, result.row, result.example_ids) == (FAILED, HandbookRow.WRONG_DATA, ("e0",))


def test_what_is_not_known_is_skipped_and_not_passed() -> None:
    assert masks.check_trained_text(foreign()).status is SKIPPED
    assert masks.check_prompts(foreign()).status is SKIPPED


def test_a_prompt_that_serving_renders_otherwise_is_found() -> None:
    view = view_of()

    def with_bos(row: TokenRow) -> TokenRow:
        return TokenRow(row.example_id, (0, *row.input_ids), (IGNORED_LABEL, *row.labels))

    assert masks.check_prompts(view).status is PASSED
    result = masks.check_prompts(replace(view, rows=[with_bos(row) for row in view.rows]))
    assert (result.status, result.row) == (FAILED, HandbookRow.WRONG_DATA)


def test_few_wrong_rows_warn_and_many_fail() -> None:
    # 1 % of 200 rows are 2: one is a warning.
    rows = [TokenRow(str(i), row.input_ids, row.labels) for i, row in enumerate([*foreign().rows] * 5)]
    for count, status in ((1, WARNING), (2, FAILED)):
        spoilt = [holed(row) if i < count else row for i, row in enumerate(rows)]
        assert masks.check_mask_holes(replace(foreign(), rows=spoilt)).status is status


def test_a_line_break_after_the_end_token_is_no_hole() -> None:
    (line_break,) = smollm2_tokenizer().encode("\n", add_special_tokens=False)

    def with_line_break(row: TokenRow) -> TokenRow:
        return TokenRow(row.example_id, (*row.input_ids, line_break), (*row.labels, line_break))

    assert "end-token-trained" not in troubles(foreign(with_line_break))
    assert "mask-without-holes" not in troubles(foreign(with_line_break))


def test_every_answer_of_a_long_conversation_may_be_trained() -> None:
    def twice(row: TokenRow) -> TokenRow:
        return TokenRow(row.example_id, row.input_ids * 2, row.labels * 2)

    found = troubles(foreign(twice))
    assert not {"mask-without-holes", "end-token-trained", "prompt-not-trained"} & found.keys()


def test_an_end_token_at_which_no_server_stops_is_a_warning() -> None:
    view = foreign()
    assert masks.check_stop_token(view).status is PASSED
    result = masks.check_stop_token(replace(view, stop_ids=frozenset({0})))
    assert (result.status, result.row) == (WARNING, HandbookRow.NEVER_STOPS)
    assert "<|im_end|>" in result.message


def test_rows_cut_at_the_limit_are_found() -> None:
    view = foreign(without_end)
    shortest = min(len(row.input_ids) for row in view.rows)
    training = replace(view.config.training, max_length_tokens=shortest)
    tight = replace(view, config=replace(view.config, training=training))
    assert masks.check_length_limit(tight).status is FAILED
    assert masks.check_length_limit(view).status is PASSED
    # A row that is as long as the limit and has its end is whole.
    whole = replace(foreign(), config=tight.config)
    assert masks.check_length_limit(whole).status is PASSED
