"""Length-bucketed, shuffled batches with dynamic padding (MISSION D4).

Shape letters: B rows, T tokens of the longest row.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch

from training.engine.chat import IGNORED_LABEL, ChatRow

BUCKET_BATCHES: Final = 50
"""Rows are sorted by length within groups of this many batches: little padding, still a different order each
epoch (the factor of transformers' LengthGroupedSampler)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded on the right to the longest of them, or sequences that several rows were packed into.

    Attributes:
        example_ids: Of the rows, in order.
        input_ids: [B, T], int64.
        attention_mask: [B, T], int64, 1 for real tokens; None for packed sequences, where the model finds the
            borders in ``position_ids``.
        labels: [B, T], int64, -100 outside answers and in the padding; not shifted.
        num_tokens: Real tokens.
        num_trained_tokens: Tokens in the loss.
        position_ids: [B, T], int64, from 0 in each packed row; None leaves them to the model.
    """

    example_ids: tuple[str, ...]
    input_ids: torch.Tensor
    attention_mask: torch.Tensor | None
    labels: torch.Tensor
    num_tokens: int
    num_trained_tokens: int
    position_ids: torch.Tensor | None = None

    @property
    def num_padded_tokens(self) -> int:
        """Tokens computed for nothing."""
        return self.input_ids.numel() - self.num_tokens

    @property
    def inputs(self) -> dict[str, torch.Tensor | None]:
        """What the model's forward pass is given."""
        inputs = {"input_ids": self.input_ids, "attention_mask": self.attention_mask}
        return inputs if self.position_ids is None else {**inputs, "position_ids": self.position_ids}

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device."""
        return replace(
            self,
            input_ids=self.input_ids.to(device),
            attention_mask=None if self.attention_mask is None else self.attention_mask.to(device),
            labels=self.labels.to(device),
            position_ids=None if self.position_ids is None else self.position_ids.to(device),
        )


def plan_epoch(lengths: Sequence[int], *, batch_size: int, generator: random.Random) -> list[list[int]]:
    """Return the row numbers of each batch of one epoch; every row occurs once.

    Rows are shuffled, sorted by length within groups of `BUCKET_BATCHES` batches, cut into batches, and the
    batches are shuffled. Only the last batch of the last group may be smaller.

    Args:
        lengths: Tokens per row.
        batch_size: Rows per batch, at least 1.
        generator: Decides the order; it is advanced.
    """
    order = list(range(len(lengths)))
    generator.shuffle(order)
    group_size = batch_size * BUCKET_BATCHES
    batches: list[list[int]] = []
    for start in range(0, len(order), group_size):
        group = sorted(order[start : start + group_size], key=lambda row: lengths[row])
        batches += [group[i : i + batch_size] for i in range(0, len(group), batch_size)]
    generator.shuffle(batches)
    return batches


def plan_steps(
    lengths: Sequence[int],
    *,
    batch_size: int,
    accumulation_steps: int,
    num_steps: int,
    seed: int,
) -> Iterator[list[list[int]]]:
    """Yield, for each optimiser step, the row numbers of its batches, epoch after epoch.

    A step does not reach over the end of an epoch: the last one of an epoch may have fewer batches.
    """
    generator = random.Random(seed)  # noqa: S311 (an order, not a secret)
    done = 0
    while done < num_steps:
        batches = plan_epoch(lengths, batch_size=batch_size, generator=generator)
        for start in range(0, len(batches), accumulation_steps):
            yield batches[start : start + accumulation_steps]
            done += 1
            if done == num_steps:
                return


def count_steps(
    num_rows: int, *, batch_size: int, accumulation_steps: int, num_epochs: float, max_steps: int | None
) -> int:
    """Return the number of optimiser steps, at least 1."""
    if max_steps is not None:
        return max_steps
    per_epoch = math.ceil(math.ceil(num_rows / batch_size) / accumulation_steps)
    return max(1, math.ceil(per_epoch * num_epochs))


def collate(rows: Sequence[ChatRow], *, pad_token_id: int) -> Batch:
    """Pad rows on the right to the longest of them."""
    length = max(len(row.input_ids) for row in rows)
    input_ids = torch.full((len(rows), length), pad_token_id, dtype=torch.int64)
    labels = torch.full((len(rows), length), IGNORED_LABEL, dtype=torch.int64)
    attention_mask = torch.zeros((len(rows), length), dtype=torch.int64)
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
        # Nothing predicts a row's first token.
        num_trained_tokens=int((labels[:, 1:] != IGNORED_LABEL).sum()),
    )
