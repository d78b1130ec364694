"""Which rows each optimiser step of a training reads, packed or not."""

import itertools
from collections.abc import Iterator, Sequence

from training.engine.batches import Batch, collate, count_steps, plan_steps
from training.engine.chat import ChatRow
from training.engine.config import OptimisationSettings
from training.engine.packing.collate import collate_packed
from training.engine.packing.plan import pack_rows


class StepPlan:
    """The batches of a training, decided by the rows and the settings alone.

    Args:
        rows: At least one, each of at most ``max_length_tokens`` tokens when they are packed.
        settings: Batches, steps, packing, seed.
        pad_token_id: Any valid id.

    Attributes:
        num_steps: All optimiser steps.
    """

    def __init__(self, rows: Sequence[ChatRow], settings: OptimisationSettings, *, pad_token_id: int) -> None:
        self._settings = settings
        self._pad_token_id = pad_token_id
        self._sequences = _make_sequences(rows, settings)
        self.num_steps = count_steps(
            len(self._sequences),
            batch_size=settings.per_device_batch_size,
            accumulation_steps=settings.gradient_accumulation_steps,
            num_epochs=settings.num_epochs,
            max_steps=settings.max_steps,
        )

    def iterate(self, *, after_step: int) -> Iterator[tuple[int, list[Batch]]]:
        """Yield the number of each later step, from 1, and its batches on the CPU."""
        steps = plan_steps(
            [sum(len(row.input_ids) for row in rows) for rows in self._sequences],
            batch_size=self._settings.per_device_batch_size,
            accumulation_steps=self._settings.gradient_accumulation_steps,
            num_steps=self.num_steps,
            seed=self._settings.seed,
        )
        for step, numbers in itertools.islice(enumerate(steps, start=1), after_step, None):
            yield step, [self._collate([self._sequences[i] for i in batch]) for batch in numbers]

    def _collate(self, sequences: Sequence[Sequence[ChatRow]]) -> Batch:
        if self._settings.packing:
            return collate_packed(sequences, pad_token_id=self._pad_token_id)
        return collate([row for rows in sequences for row in rows], pad_token_id=self._pad_token_id)


def _make_sequences(rows: Sequence[ChatRow], settings: OptimisationSettings) -> list[list[ChatRow]]:
    if not settings.packing:
        return [[row] for row in rows]
    packs = pack_rows([len(row.input_ids) for row in rows], capacity=settings.max_length_tokens)
    return [[rows[i] for i in pack] for pack in packs]
