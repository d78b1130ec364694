"""Packed batches.

Shape letters: B sequences, T tokens of the longest sequence.
"""

from collections.abc import Sequence

import torch

from training.engine.batches import Batch
from training.engine.chat import IGNORED_LABEL, ChatRow


def collate_packed(sequences: Sequence[Sequence[ChatRow]], *, pad_token_id: int) -> Batch:
    """Put the rows of each sequence behind each other, and pad sequences on the right to the longest.

    Positions begin at 0 in each row, and no attention mask is given: from that, transformers makes the mask
    that keeps the rows apart (``masking_utils.find_packed_sequence_indices``; flash attention does the same
    for B = 1 in ``_is_packed_sequence``). Each padding token is a row of its own.

    Nothing is trained to follow from the row before: the first label of each row is left out, as the shift
    leaves it out of a row that stands alone.

    Args:
        sequences: The rows of each sequence.
        pad_token_id: Any valid id.
    """
    length = max(sum(len(row.input_ids) for row in rows) for rows in sequences)
    input_ids = torch.full((len(sequences), length), pad_token_id, dtype=torch.int64)
    labels = torch.full_like(input_ids, IGNORED_LABEL)
    position_ids = torch.zeros_like(input_ids)
    for index, rows in enumerate(sequences):
        start = 0
        for row in rows:
            end = start + len(row.input_ids)
            input_ids[index, start:end] = torch.tensor(row.input_ids)
            labels[index, start:end] = torch.tensor(row.labels)
            labels[index, start] = IGNORED_LABEL
            position_ids[index, start:end] = torch.arange(end - start)
            start = end
    all_rows = [row for rows in sequences for row in rows]
    return Batch(
        example_ids=tuple(row.example_id for row in all_rows),
        input_ids=input_ids,
        attention_mask=None,
        labels=labels,
        num_tokens=sum(len(row.input_ids) for row in all_rows),
        num_trained_tokens=int((labels != IGNORED_LABEL).sum()),
        position_ids=position_ids,
    )
