import pytest

from tests.fixtures.models import smollm2_tokenizer
from tests.training.engine.preflight.views import foreign, view_of
from training.engine.batches import collate
from training.engine.chat import IGNORED_LABEL, ChatRow
from training.engine.packing.collate import collate_packed
from training.engine.preflight.decoding import decode_batches
from training.engine.preflight.token_rows import TokenRow, from_chat_rows, make_batch, split_batch

ROWS = (ChatRow("a", (1, 2, 3, 4, 5), 3), ChatRow("b", (6, 7), 1), ChatRow("c", (8, 9, 10), 2))


def test_rows_come_out_of_a_padded_batch_as_they_went_in() -> None:
    assert tuple(split_batch(collate(ROWS, pad_token_id=0))) == from_chat_rows(ROWS)


def test_rows_come_out_of_packed_sequences_without_their_padding() -> None:
    batch = collate_packed([ROWS[:1], ROWS[1:2], ROWS[2:]], pad_token_id=0)
    assert [row.input_ids for row in split_batch(batch)] == [row.input_ids for row in ROWS]
    batch = collate_packed([ROWS[1:], ROWS[:1]], pad_token_id=0)
    assert [row.example_id for row in split_batch(batch)] == ["b", "c", "a"]
    assert [row.labels for row in split_batch(batch)][2] == ROWS[0].labels


def test_a_batch_of_foreign_rows_is_the_trainers() -> None:
    ours, theirs = make_batch(from_chat_rows(ROWS), pad_token_id=7), collate(ROWS, pad_token_id=7)
    assert (ours.labels == theirs.labels).all() and (ours.input_ids == theirs.input_ids).all()
    assert ours.num_trained_tokens == theirs.num_trained_tokens == 4  # 2 + 1 + 1
    assert make_batch([TokenRow("x", (1, 2), (1, 2))], pad_token_id=0).num_trained_tokens == 1


def test_labels_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="'x' has 2 ids and 1 labels"):
        TokenRow("x", (1, 2), (1,))


def test_stretches_cover_the_row() -> None:
    row = TokenRow("x", (1, 2, 3, 4), (IGNORED_LABEL, 2, IGNORED_LABEL, 4))
    assert list(row.iterate_spans()) == [(0, 1, False), (1, 2, True), (2, 3, False), (3, 4, True)]
    assert (row.trained_ids, row.num_prompt_tokens) == ((2, 4), 1)


def test_decoded_batches_show_prompt_and_answer() -> None:
    view = view_of()
    batch = make_batch(view.rows[:2], pad_token_id=2)
    ((first, second),) = decode_batches(smollm2_tokenizer(), [batch])
    assert [segment.trained for segment in first.segments] == [False, True]
    answer = view.examples[0].answer
    assert first.segments[1].text == f"{answer}<|im_end|>"
    assert first.segments[0].text.endswith("<|im_start|>assistant\n")
    assert second.num_tokens == len(foreign().rows[1].input_ids)
    assert second.num_trained_tokens == len(view.rows[1].trained_ids)
