"""Memory, speed and padding."""

from itertools import accumulate

import pytest

from tests.training.engine.monitor.streams import falling, make_held_out, told, watch
from training.engine.monitor.history import RunFacts

GB = 10**9
MIB = 1 << 20


def test_memory_that_grows_from_step_to_step() -> None:
    memory = [GB + 2 * MIB * step for step in range(130)]
    monitor = watch(falling(130), memory_bytes=memory)
    assert told(monitor) == [("memory-grows", "warning", 31)]
    assert monitor.findings[0].evidence["bytes_per_step"] == pytest.approx(2 * MIB)


@pytest.mark.parametrize(
    "memory",
    [
        [GB + min(step, 60) * 5 * MIB for step in range(230)],  # Grows to its working size.
        [GB + (step * 7919 % 200) * MIB for step in range(230)],  # Swings with the lengths.
        [GB + step * MIB // 10 for step in range(230)],  # 23 MiB in all.
    ],
)
def test_memory_that_only_moves(memory: list[int]) -> None:
    assert told(watch(falling(230), memory_bytes=memory)) == []


def test_an_evaluation_that_keeps_memory() -> None:
    levels = list(accumulate([GB, *[100 * MIB] * 3]))
    held_out = [make_held_out(20 * (i + 1), 1.0, before=levels[i], after=levels[i + 1]) for i in range(3)]
    assert told(watch(falling(70), held_out=held_out)) == [("memory-grows-at-evaluation", "warning", 40)]


def test_an_evaluation_whose_buffers_are_used_again() -> None:
    held_out = [make_held_out(20 * (i + 1), 1.0, before=GB, after=GB + 100 * MIB) for i in range(4)]
    assert told(watch(falling(90), held_out=held_out)) == []


@pytest.mark.parametrize(("seconds", "is_told"), [(0.9, False), (1.1, True)])
def test_speed_that_halves(seconds: float, is_told: bool) -> None:
    monitor = watch(falling(130), seconds=[0.5] * 60 + [seconds] * 70)
    assert [code for code, _, _ in told(monitor)] == (["throughput-falls"] if is_told else [])


def test_longer_rows_and_a_slow_minute_are_no_fall() -> None:
    tokens = [900] * 60 + [3600] * 70
    assert told(watch(falling(130), num_tokens=tokens, seconds=[0.5] * 60 + [1.9] * 70)) == []
    assert told(watch(falling(150), seconds=[0.5] * 60 + [3.0] * 20 + [0.5] * 70)) == []


def test_speed_below_half_of_what_was_expected() -> None:
    # 1000 computed tokens in half a second.
    assert told(watch(falling(60), facts=RunFacts(expected_tokens_per_second=3900))) == []
    assert told(watch(falling(60), facts=RunFacts(expected_tokens_per_second=4100))) == [
        ("throughput-low", "warning", 6)
    ]


@pytest.mark.parametrize(
    ("padded", "is_told"), [(380, False), (400, True)]
)  # Of 900 + padded: 29.7 %, 30.8 %.
def test_padding(padded: int, is_told: bool) -> None:
    expected = [("padding-waste", "warning", 1)] if is_told else []
    assert told(watch(falling(20), num_padded_tokens=padded)) == expected
