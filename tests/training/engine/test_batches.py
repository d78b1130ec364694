import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.batches import collate, count_steps, plan_epoch, plan_steps
from training.engine.chat import IGNORED_LABEL, ChatRow

LENGTHS = st.lists(st.integers(1, 500), min_size=1, max_size=300)


@given(LENGTHS, st.integers(1, 9), st.integers(0, 5))
def test_every_row_once_and_full_batches(lengths: list[int], batch_size: int, seed: int) -> None:
    batches = plan_epoch(lengths, batch_size=batch_size, generator=random.Random(seed))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert sum(len(batch) < batch_size for batch in batches) <= 1


@given(LENGTHS, st.integers(0, 5))
def test_same_seed_same_order(lengths: list[int], seed: int) -> None:
    first, second = (plan_epoch(lengths, batch_size=4, generator=random.Random(seed)) for _ in range(2))
    assert first == second


def test_bucketing_saves_padding() -> None:
    generator = random.Random(0)
    lengths = [generator.randint(10, 200) for _ in range(400)]

    def count_padding(batches: list[list[int]]) -> int:
        return sum(max(lengths[i] for i in batch) - lengths[j] for batch in batches for j in batch)

    planned = count_padding(plan_epoch(lengths, batch_size=8, generator=generator))
    unsorted = count_padding([list(range(i, i + 8)) for i in range(0, 400, 8)])
    assert planned < 0.15 * unsorted


@pytest.mark.parametrize(
    ("num_rows", "num_epochs", "max_steps", "expected"),
    # By hand: 10 rows in batches of 3 are 4 batches, 2 steps of 2 batches per epoch.
    [(10, 1, None, 2), (10, 2, None, 4), (10, 1.5, None, 3), (10, 2, 7, 7), (1, 0.1, None, 1)],
)
def test_count_steps(num_rows: int, num_epochs: float, max_steps: int | None, expected: int) -> None:
    counted = count_steps(
        num_rows, batch_size=3, accumulation_steps=2, num_epochs=num_epochs, max_steps=max_steps
    )
    assert counted == expected
    steps = list(plan_steps([5] * num_rows, batch_size=3, accumulation_steps=2, num_steps=expected, seed=1))
    assert len(steps) == expected


def test_epochs_have_different_orders() -> None:
    steps = list(plan_steps(list(range(1, 41)), batch_size=1, accumulation_steps=40, num_steps=2, seed=3))
    assert steps[0] != steps[1]
    assert sorted(steps[0]) == sorted(steps[1])


def test_collate_pads_on_the_right() -> None:
    rows = [ChatRow("a", (5, 6, 7), 2), ChatRow("b", (8, 9, 10, 11, 12), 3)]
    batch = collate(rows, pad_token_id=0)
    assert batch.input_ids.tolist() == [[5, 6, 7, 0, 0], [8, 9, 10, 11, 12]]
    assert batch.attention_mask is not None
    assert batch.attention_mask.tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    skip = IGNORED_LABEL
    assert batch.labels.tolist() == [[skip, skip, 7, skip, skip], [skip, skip, skip, 11, 12]]
    assert (batch.num_tokens, batch.num_trained_tokens, batch.num_padded_tokens) == (8, 3, 2)
