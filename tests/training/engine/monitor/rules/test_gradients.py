"""Norms that are clipped often, small for long, or overflow float16."""

from typing import Any

import pytest

from tests.training.engine.monitor.streams import falling, told, watch


@pytest.mark.parametrize(("num_clipped", "is_told"), [(49, False), (50, True)])
def test_clipping_after_the_start(num_clipped: int, is_told: bool) -> None:
    norms = [3.0] * 50 + [1.5] * num_clipped + [0.9] * (100 - num_clipped)
    expected = [("gradient-clipped-often", "warning", 51)] if is_told else []
    assert told(watch(falling(150), gradient_norm=norms)) == expected


def test_the_message_tells_examples_from_the_rate() -> None:
    rate = watch(falling(150), gradient_norm=1.5).findings[0]
    tail = watch(falling(150), gradient_norm=[1.5] * 149 + [30.0]).findings[0]
    limit = watch(falling(150), gradient_norm=0.4, max_grad_norm=0.1).findings[0]
    assert rate.treatment.startswith("Halve")
    assert tail.treatment.startswith("Look at the examples")
    assert "below the usual" in limit.message


def test_no_clipping_no_finding() -> None:
    assert told(watch(falling(150), gradient_norm=50.0, max_grad_norm=None)) == []


@pytest.mark.parametrize(
    ("losses", "rates", "expected"),
    [
        (falling(50) + [0.8] * 50, 2e-4, [("gradient-small", "warning", 51)]),
        (falling(50) + [0.8 - 0.004 * i for i in range(50)], 2e-4, [("gradient-small", "info", 51)]),
        (falling(50) + [0.05] * 50, 2e-4, []),  # Learnt: little is left.
        (falling(50) + [0.8] * 50, [2e-4] * 50 + [2e-5] * 50, []),  # The schedule is ending.
    ],
)
def test_small_for_long(losses: list[float], rates: Any, expected: list[Any]) -> None:
    assert told(watch(losses, learning_rate=rates, gradient_norm=0.05)) == expected


def test_a_few_overflows_at_the_start_are_the_scale_finding_its_place() -> None:
    assert told(watch(falling(100), gradient_norm=[None] * 10 + [0.5] * 90)) == []


def test_overflows_that_go_on() -> None:
    assert told(watch([2.0, 1.9] * 10, gradient_norm=None)) == [("float16-overflows", "error", 1)]
    sometimes = [None if step % 4 == 0 else 0.5 for step in range(70)]
    assert told(watch(falling(70), gradient_norm=sometimes)) == [("float16-overflows", "warning", 21)]
