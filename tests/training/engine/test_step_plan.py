"""Which rows the steps read."""

from collections.abc import Sequence
from typing import Any

import pytest

from training.engine.chat import ChatRow
from training.engine.config import OptimisationSettings
from training.engine.step_plan import StepPlan

ROWS = [ChatRow(str(i), tuple(range(3, 6 + i)), 1) for i in range(12)]
"""3 to 14 tokens, 102 in all."""


def read_ids(plan: StepPlan, *, after_step: int = 0) -> list[tuple[int, list[Sequence[str]]]]:
    return [
        (step, [batch.example_ids for batch in batches])
        for step, batches in plan.iterate(after_step=after_step)
    ]


@pytest.mark.parametrize("is_packed", [True, False])
def test_an_epoch_reads_every_row_once_and_can_be_taken_up(is_packed: bool) -> None:
    settings = OptimisationSettings(
        per_device_batch_size=2, gradient_accumulation_steps=2, num_epochs=2, packing=is_packed,
        max_length_tokens=34,
    )  # fmt: skip
    plan = StepPlan(ROWS, settings, pad_token_id=0)
    steps = read_ids(plan)
    assert len(steps) == plan.num_steps
    per_epoch = plan.num_steps // 2
    for epoch in (steps[:per_epoch], steps[per_epoch:]):
        read = [example_id for _, batches in epoch for batch in batches for example_id in batch]
        assert sorted(read) == sorted(row.example_id for row in ROWS)
    assert read_ids(plan, after_step=1) == steps[1:]
    assert read_ids(StepPlan(ROWS, settings, pad_token_id=0)) == steps


def test_packing_makes_fewer_steps_and_less_padding() -> None:
    """102 tokens fill one sequence of 102; by rows of two with a batch a step there are six steps."""
    settings: dict[str, Any] = {"per_device_batch_size": 2, "gradient_accumulation_steps": 1, "num_epochs": 1}
    plain = StepPlan(ROWS, OptimisationSettings(**settings), pad_token_id=0)
    packed = StepPlan(
        ROWS,
        OptimisationSettings(**settings, packing=True, max_length_tokens=102),
        pad_token_id=0,
    )
    assert (plain.num_steps, packed.num_steps) == (6, 1)
    batches = [batch for _, batches in packed.iterate(after_step=0) for batch in batches]
    assert sum(batch.num_tokens for batch in batches) == 102
    assert sum(batch.num_padded_tokens for batch in batches) == 0
