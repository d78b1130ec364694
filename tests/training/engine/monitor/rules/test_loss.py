"""Near zero, swings, divergence and the held-out loss."""

import pytest

from tests.training.engine.monitor.streams import falling, make_held_out, told, watch
from training.engine.monitor.history import RunFacts

LEARNT = falling(100, floor=0.001, pace=6)
"""Below 0.02 on average from about step 40 to 60 on."""


@pytest.mark.parametrize(
    ("held_out", "found"),
    [(0.5, ("loss-near-zero-memorised", "warning", 41)), (0.002, ("loss-near-zero-everywhere", "info", 41))],
)
def test_the_held_out_loss_says_what_near_zero_means(held_out: float, found: tuple[str, str, int]) -> None:
    facts = RunFacts(has_held_out=True)
    assert told(watch(LEARNT, held_out=[make_held_out(60, held_out)], facts=facts)) == [found]


def test_near_zero_without_a_held_out_loss() -> None:
    begin = next(n for n in range(20, 100) if sum(LEARNT[n - 20 : n]) / 20 < 0.02) - 19
    assert told(watch(LEARNT, facts=RunFacts(has_held_out=False))) == [
        ("loss-near-zero-unexplained", "warning", begin)
    ]
    assert told(watch(LEARNT, facts=RunFacts(has_held_out=True))) == []
    assert told(watch(LEARNT)) == []  # Nobody knows yet whether it will be measured.


def test_a_task_that_is_learnt_well_is_not_near_zero() -> None:
    assert told(watch(falling(200, floor=0.03), facts=RunFacts(has_held_out=False))) == []


def test_progress_lost_twice_is_a_swing() -> None:
    losses = [2.0] * 10 + [1.0] * 10 + [1.9] * 10 + [1.0] * 10 + [1.9] * 10
    assert told(watch(losses)) == [("loss-oscillates", "warning", 21)]


def test_progress_lost_for_good_is_a_divergence() -> None:
    assert told(watch([2.0] * 10 + [1.0] * 10 + [1.8] * 40)) == [("loss-diverges", "error", 21)]
    assert told(watch(falling(10) + [4.0] * 20)) == [("loss-diverges", "error", 11)]


def test_one_hump_and_hard_batches_are_neither() -> None:
    hump = falling(60) + [1.6] * 10 + falling(60, start=1.0)
    assert told(watch(hump)) == []
    # Batches of two kinds, as with eight examples a step on real data: 0.03 and 0.75 in turn.
    assert told(watch(falling(20) + [0.03, 0.75, 0.4, 0.1] * 50)) == []


def test_overfitting_begins_at_the_lowest_held_out_loss() -> None:
    held_out = [make_held_out(step, loss) for step, loss in ((20, 1.0), (40, 0.8), (60, 0.9), (80, 0.95))]
    monitor = watch(falling(100, floor=0.1, pace=40), held_out=held_out)
    assert told(monitor) == [("held-out-rises", "warning", 40)]
    assert monitor.findings[0].evidence["held_out_loss"] == 0.95


@pytest.mark.parametrize(
    "losses",
    [
        (1.0, 0.8, 0.82, 0.81),  # Within noise.
        (1.0, 0.8, 0.9),  # Once, and not by much.
        (0.002, 0.001, 0.002, 0.003),  # Less than a hundredth of a nat.
    ],
)
def test_what_is_no_rise(losses: tuple[float, ...]) -> None:
    held_out = [make_held_out(20 * (index + 1), loss) for index, loss in enumerate(losses)]
    assert told(watch(falling(100, floor=0.1, pace=40), held_out=held_out)) == []


def test_when_the_training_loss_rises_too_it_is_no_overfitting() -> None:
    held_out = [make_held_out(step, loss) for step, loss in ((20, 1.0), (40, 0.8), (60, 1.2), (80, 1.4))]
    losses = falling(45) + [1.0] * 50
    assert "held-out-rises" not in {code for code, _, _ in told(watch(losses, held_out=held_out))}
