"""The first batches as people can read them: decoded, with what is trained marked (MISSION T1(1), T2)."""

from collections.abc import Iterable

from training.engine.batches import Batch
from training.engine.chat import IGNORED_LABEL, ChatTokenizer
from training.engine.preflight.report import Segment, ShownRow
from training.engine.preflight.token_rows import TokenRow, split_batch


def decode(tokenizer: ChatTokenizer, ids: Iterable[int]) -> str:
    """Return the text of token ids, special tokens included, nothing tidied up."""
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def decode_batches(tokenizer: ChatTokenizer, batches: Iterable[Batch]) -> tuple[tuple[ShownRow, ...], ...]:
    """Return the rows of batches, decoded from the tensors that enter the model."""
    return tuple(tuple(decode_row(tokenizer, row) for row in split_batch(batch)) for batch in batches)


def decode_row(tokenizer: ChatTokenizer, row: TokenRow) -> ShownRow:
    """Return one row, decoded stretch by stretch."""
    return ShownRow(
        example_id=row.example_id,
        segments=tuple(
            Segment(decode(tokenizer, row.input_ids[begin:end]), trained)
            for begin, end, trained in row.iterate_spans()
        ),
        num_tokens=len(row.input_ids),
        num_trained_tokens=sum(label != IGNORED_LABEL for label in row.labels[1:]),
    )
