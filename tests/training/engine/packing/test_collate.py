from training.engine.batches import collate
from training.engine.chat import IGNORED_LABEL, ChatRow
from training.engine.packing.collate import collate_packed

SKIP = IGNORED_LABEL


def test_rows_behind_each_other() -> None:
    first, second, third = ChatRow("a", (5, 6, 7), 2), ChatRow("b", (8, 9), 1), ChatRow("c", (1, 2), 1)
    batch = collate_packed([[first, second], [third]], pad_token_id=0)
    assert batch.input_ids.tolist() == [[5, 6, 7, 8, 9], [1, 2, 0, 0, 0]]
    assert batch.position_ids is not None
    assert batch.position_ids.tolist() == [[0, 1, 2, 0, 1], [0, 1, 0, 0, 0]]
    assert batch.labels.tolist() == [[SKIP, SKIP, 7, SKIP, 9], [SKIP, 2, SKIP, SKIP, SKIP]]
    assert batch.attention_mask is None
    assert "position_ids" in batch.inputs
    assert (batch.num_tokens, batch.num_trained_tokens, batch.num_padded_tokens) == (7, 3, 3)
    assert batch.example_ids == ("a", "b", "c")


def test_a_first_token_is_never_predicted_from_the_row_before() -> None:
    """Rows without a prompt: their first token is in no loss, packed or alone, and is not counted."""
    rows = [ChatRow("a", (5, 6, 7), 0), ChatRow("b", (8, 9), 0)]
    packed = collate_packed([rows], pad_token_id=0)
    assert packed.labels.tolist() == [[SKIP, 6, 7, SKIP, 9]]
    assert packed.num_trained_tokens == collate(rows, pad_token_id=0).num_trained_tokens == 3
