"""Rows as token ids and labels, wherever they come from: rendered here, or tokenised elsewhere."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch

from training.engine.batches import Batch
from training.engine.chat import IGNORED_LABEL, ChatRow


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One row before it is padded.

    Attributes:
        example_id: Names it in messages.
        input_ids: What the model reads.
        labels: As long as ``input_ids`` and not shifted; -100 where nothing is trained.
    """

    example_id: str
    input_ids: tuple[int, ...]
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse labels of another length.

        Raises:
            ValueError: They do not fit.
        """
        if len(self.labels) != len(self.input_ids):
            raise ValueError(
                f"row {self.example_id!r} has {len(self.input_ids)} ids and {len(self.labels)} labels"
            )

    @property
    def trained_ids(self) -> tuple[int, ...]:
        """The ids whose label is not -100."""
        pairs = zip(self.input_ids, self.labels, strict=True)
        return tuple(token for token, label in pairs if label != IGNORED_LABEL)

    @property
    def is_trained(self) -> bool:
        """Whether any token is in the loss; nothing predicts the first one."""
        return any(label != IGNORED_LABEL for label in self.labels[1:])

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens before the first trained one; all of them when none is trained."""
        return next((i for i, label in enumerate(self.labels) if label != IGNORED_LABEL), len(self.labels))

    def iterate_spans(self) -> Iterator[tuple[int, int, bool]]:
        """Yield begin, end (exclusive) and whether trained of each stretch, from the first token to the
        last.
        """
        begin = 0
        for trained, labels in groupby(self.labels, key=lambda label: label != IGNORED_LABEL):
            end = begin + sum(1 for _ in labels)
            yield begin, end, trained
            begin = end


def from_chat_rows(rows: Iterable[ChatRow]) -> tuple[TokenRow, ...]:
    """Return rows that were rendered here in the common form."""
    return tuple(TokenRow(row.example_id, row.input_ids, row.labels) for row in rows)


def split_batch(batch: Batch) -> list[TokenRow]:
    """Return the rows that are in a batch, read from its tensors; padding is left out.

    Args:
        batch: Padded or packed, on any device.
    """
    rows: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for index in range(batch.input_ids.shape[0]):
        ids, labels = batch.input_ids[index].tolist(), batch.labels[index].tolist()
        rows += [(tuple(ids[begin:end]), tuple(labels[begin:end])) for begin, end in _find_rows(batch, index)]
    return [TokenRow(name, ids, labels) for name, (ids, labels) in zip(batch.example_ids, rows, strict=True)]


def _find_rows(batch: Batch, index: int) -> list[tuple[int, int]]:
    """Return begin and end of each row in one sequence of a batch."""
    if batch.position_ids is None:
        mask = batch.attention_mask
        return [(0, batch.input_ids.shape[1] if mask is None else int(mask[index].sum()))]
    positions = batch.position_ids[index].tolist()
    while len(positions) > 1 and positions[-1] == 0:
        positions.pop()  # padding: each token of it stands at position 0, and a row has at least two
    starts = [at for at, position in enumerate(positions) if position == 0]
    return list(zip(starts, [*starts[1:], len(positions)], strict=True))


def make_batch(rows: Sequence[TokenRow], *, pad_token_id: int) -> Batch:
    """Pad rows on the right to the longest of them, as `training.engine.batches.collate` does."""
    length = max(len(row.input_ids) for row in rows)
    shape = (len(rows), length)
    input_ids = torch.full(shape, pad_token_id, dtype=torch.int64)
    labels = torch.full(shape, IGNORED_LABEL, dtype=torch.int64)
    attention_mask = torch.zeros(shape, dtype=torch.int64)
    for index, row in enumerate(rows):
        num_tokens = len(row.input_ids)
        input_ids[index, :num_tokens] = torch.tensor(row.input_ids)
        labels[index, :num_tokens] = torch.tensor(row.labels)
        attention_mask[index, :num_tokens] = 1
    return Batch(
        example_ids=tuple(row.example_id for row in rows),
        input_ids=input_ids,
        attention_mask=attention_mask,
        labels=labels,
        num_tokens=sum(len(row.input_ids) for row in rows),
        num_trained_tokens=int((labels[:, 1:] != IGNORED_LABEL).sum()),
    )
