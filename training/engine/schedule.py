"""Learning-rate schedules as plain functions of the step."""

import math


def count_warmup_steps(num_steps: int, warmup_fraction: float) -> int:
    """Return the number of warm-up steps, rounded up, less than ``num_steps``."""
    return min(num_steps - 1, math.ceil(num_steps * warmup_fraction))


def learning_rate_factor(step: int, *, num_steps: int, warmup_steps: int, scheduler: str) -> float:
    """Return the factor on the peak learning rate, 0-1.

    Args:
        step: Number of steps done before this one, from 0.
        num_steps: All steps.
        warmup_steps: Steps of linear rise; the first step has a rate above 0 (unlike transformers, whose
            first step is lost).
        scheduler: "cosine" falls by (1 + cos(pi x)) / 2 (SGDR, https://arxiv.org/abs/1608.03983), "linear" by
            1 - x, over the steps after the warm-up; "constant" stays.
    """
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    if scheduler == "constant":
        return 1.0
    done_fraction = (step - warmup_steps) / max(1, num_steps - warmup_steps)
    if scheduler == "linear":
        return 1.0 - done_fraction
    return 0.5 * (1.0 + math.cos(math.pi * done_fraction))
