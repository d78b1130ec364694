import pytest

from training.engine.schedule import count_warmup_steps, learning_rate_factor


def factor(step: int, scheduler: str = "cosine") -> float:
    return learning_rate_factor(step, num_steps=12, warmup_steps=2, scheduler=scheduler)


def test_warmup_rises_from_above_zero() -> None:
    assert [factor(0), factor(1)] == pytest.approx([1 / 3, 2 / 3])


def test_cosine_closed_form() -> None:
    # (1 + cos(pi x)) / 2 at x = 0, 1/2 and 9/10.
    assert factor(2) == pytest.approx(1.0)
    assert factor(7) == pytest.approx(0.5)
    assert factor(11) == pytest.approx(0.02447, abs=1e-5)


def test_linear_and_constant() -> None:
    assert factor(7, "linear") == pytest.approx(0.5)
    assert factor(11, "constant") == 1.0


@pytest.mark.parametrize(
    ("num_steps", "fraction", "expected"), [(100, 0.03, 3), (10, 0.03, 1), (1, 0.03, 0), (5, 0.0, 0)]
)
def test_count_warmup_steps(num_steps: int, fraction: float, expected: int) -> None:
    assert count_warmup_steps(num_steps, fraction) == expected
