"""Rules about the loss after its start: near zero, swinging, climbing, and the held-out loss."""

from collections.abc import Sequence
from typing import Final

from registry.artifacts.findings import Severity
from training.engine.handbook.lookup import get_treatment
from training.engine.handbook.rows import HandbookRow
from training.engine.monitor.findings import Finding
from training.engine.monitor.history import RunHistory
from training.engine.monitor.rule import Moment, StepRule
from training.engine.monitor.statistics import robust_sd

NEAR_ZERO: Final = 0.02
"""Nats per token: the next token is nearly certain (probability 0.98). A fifth of what the ten-example test
calls learnt by heart (MISSION T3), because a task with few answers may rightly come that far."""
NEAR_ZERO_STEPS: Final = 20
MEMORISED_HELD_OUT: Final = 0.1
"""MISSION T3's loss of what is learnt by heart; held-out examples above it are not."""
MEMORISED_FACTOR: Final = 3.0
UNMEASURED_STEPS: Final = 100
"""Twice the default interval of the held-out loss: by then it would have been measured."""

BLOCK_STEPS: Final = 10
"""MISSION D1's interval of the log: single steps differ by how hard their examples are."""
MIN_PROGRESS: Final = 0.2
"""Fraction of the first loss that must have been gained before losing it again counts."""
LOST_PROGRESS: Final = 0.5
"""Fraction of what had been gained; healthy runs lose a few hundredths of it (SmolLM2 on snips, batch 8:
0.2)."""
DIVERGED: Final = 1.2
"""Factor on the first loss."""
NUM_SWINGS: Final = 2
LASTING_BLOCKS: Final = 3
"""Progress that stays lost for so many blocks is no swing."""
NOISE_FACTOR: Final = 4.0
"""A rise counts only when it is so many standard deviations of what blocks scatter by."""

RISE_FRACTION: Final = 0.10
"""At a constant rate healthy runs of the tiny test model come within 5 to 10 % of their best again and
again."""
CLEAR_RISE_FRACTION: Final = 0.30
"""One measurement that far above the best is enough."""
MIN_RISE: Final = 0.01
"""Nats per token."""
NUM_RISES: Final = 2
MIN_MEASUREMENTS: Final = 3


def _find_near_zero(history: RunHistory) -> Finding | None:
    num = len(history)
    if num < NEAR_ZERO_STEPS or history.mean_loss(num - NEAR_ZERO_STEPS, num) >= NEAR_ZERO:
        return None
    loss = history.mean_loss(num - NEAR_ZERO_STEPS, num)
    evidence = {"loss": loss, "num_steps": float(NEAR_ZERO_STEPS)}
    told = f"The training loss was {loss:.2g} over {NEAR_ZERO_STEPS} steps"
    if history.held_out:
        return _judge_near_zero(history, loss, evidence, told)
    if history.facts.has_held_out or (history.facts.has_held_out is None and not _is_long_near_zero(history)):
        return None
    return _near_zero(
        history,
        "unexplained",
        Severity.WARNING,
        f"{told}, and no held-out loss says whether it is learnt by heart, leaked or easy.",
        evidence,
    )


def _is_long_near_zero(history: RunHistory) -> bool:
    num = len(history)
    return num >= UNMEASURED_STEPS and history.mean_loss(num - UNMEASURED_STEPS, num) < NEAR_ZERO


def _judge_near_zero(
    history: RunHistory, loss: float, evidence: dict[str, float], told: str
) -> Finding | None:
    last = history.held_out[-1]
    if last.step <= history.last_step - NEAR_ZERO_STEPS:
        return None  # Measured before the loss was so low; the next measurement says more.
    evidence = {**evidence, "held_out_loss": last.loss}
    if last.loss >= max(MEMORISED_HELD_OUT, MEMORISED_FACTOR * loss):
        message = (
            f"{told} while the held-out loss is {last.loss:.3g}: the training examples are learnt by heart."
        )
        return _near_zero(history, "memorised", Severity.WARNING, message, evidence)
    message = (
        f"{told} and the held-out loss is {last.loss:.2g} as well: the task is easy, or held-out examples "
        f"stand "
        "in the training data."
    )
    return _near_zero(history, "everywhere", Severity.INFO, message, evidence)


def _near_zero(
    history: RunHistory, kind: str, severity: Severity, message: str, evidence: dict[str, float]
) -> Finding:
    return Finding(
        code=f"monitor/loss-near-zero-{kind}",
        row=HandbookRow.LOSS_NEAR_ZERO,
        severity=severity,
        step=history.step_at(-NEAR_ZERO_STEPS),
        message=message,
        evidence=evidence,
    )


def _find_swings(history: RunHistory) -> Finding | None:
    if len(history) % BLOCK_STEPS or len(history) < 2 * BLOCK_STEPS:
        return None
    blocks = [history.mean_loss(start, start + BLOCK_STEPS) for start in range(0, len(history), BLOCK_STEPS)]
    # Only the first step is computed with weights that were not trained; high rates move the second.
    first = max(history.losses[0], 1e-9)
    # Blocks scatter by the noise of their steps; what is left of it in a mean of ten.
    noise = NOISE_FACTOR * _step_noise(history) / BLOCK_STEPS**0.5
    lost = [index for index in range(len(blocks)) if _loses_progress(blocks, index, first, noise)]
    num_swings = sum(index - 1 not in lost for index in lost)
    if num_swings >= NUM_SWINGS:
        return _tell_swings(history, blocks, lost, num_swings)
    has_lost_all = len(lost) >= LASTING_BLOCKS and lost[-1] == len(blocks) - 1
    if has_lost_all or _has_climbed(history, blocks, first):
        return _tell_divergence(history, blocks, first, lost)
    return None


def _has_climbed(history: RunHistory, blocks: Sequence[float], first: float) -> bool:
    """Whether the loss is clearly above its first value."""
    # The first loss is a single step's: it may lie as far below its mean as steps scatter.
    scatter = _step_noise(history) / max(sum(blocks) / len(blocks), 1e-9)
    return min(blocks[-2:]) > (DIVERGED + NOISE_FACTOR * scatter) * first


def _step_noise(history: RunHistory) -> float:
    """Scatter of the steps around their block's mean."""
    spread = [
        history.losses[index] - sum(history.losses[start : start + BLOCK_STEPS]) / BLOCK_STEPS
        for start in range(0, len(history), BLOCK_STEPS)
        for index in range(start, start + BLOCK_STEPS)
    ]
    return robust_sd(spread)


def _loses_progress(blocks: Sequence[float], index: int, first: float, noise: float) -> bool:
    if index == 0:
        return False
    best = min(blocks[:index])
    progress = first - best
    return progress >= MIN_PROGRESS * first and blocks[index] - best > max(LOST_PROGRESS * progress, noise)


def _tell_swings(
    history: RunHistory, blocks: Sequence[float], lost: Sequence[int], num_swings: int
) -> Finding:
    index = lost[0]
    best, highest = min(blocks[:index]), max(blocks[i] for i in lost)
    return Finding(
        code="monitor/loss-oscillates",
        row=HandbookRow.LOSS_OSCILLATES,
        severity=Severity.WARNING,
        step=history.step_at(index * BLOCK_STEPS),
        message=(
            f"The loss had fallen to {best:.3g} and rose again to {highest:.3g}, {num_swings} times in "
            f"{len(history)} steps (means of {BLOCK_STEPS} steps), at learning rates up to "
            f"{max(history.rates):.2g}."
        ),
        evidence={
            "lowest_loss": best,
            "highest_loss": highest,
            "num_swings": num_swings,
            "highest_learning_rate": max(history.rates),
        },
    )


def _tell_divergence(
    history: RunHistory, blocks: Sequence[float], first: float, lost: Sequence[int]
) -> Finding:
    index = lost[0] if lost else next(i for i, loss in enumerate(blocks) if loss > DIVERGED * first)
    return Finding(
        code="monitor/loss-diverges",
        row=HandbookRow.LOSS_OSCILLATES,
        severity=Severity.ERROR,
        step=history.step_at(index * BLOCK_STEPS),
        message=(
            f"The loss began at {first:.3g}, was {min(blocks):.3g} at its lowest and is {blocks[-1]:.3g} "
            f"now (means "
            f"of {BLOCK_STEPS} steps): it does not come down again, at learning rates up to "
            f"{max(history.rates):.2g}."
        ),
        evidence={
            "first_loss": first,
            "lowest_loss": min(blocks),
            "loss": blocks[-1],
            "highest_learning_rate": max(history.rates),
        },
        treatment=get_treatment(HandbookRow.LOSS_OSCILLATES),
    )


def _find_held_out_rise(history: RunHistory) -> Finding | None:
    measured = history.held_out
    if len(measured) < MIN_MEASUREMENTS:
        return None
    best = min(measured, key=lambda record: record.loss)
    later = [record for record in measured if record.step > best.step]
    if not later:
        return None
    rise = later[-1].loss - best.loss
    is_clear = rise >= CLEAR_RISE_FRACTION * best.loss
    recent = later[-NUM_RISES:]
    is_lasting = len(recent) == NUM_RISES and all(
        record.loss - best.loss >= RISE_FRACTION * best.loss for record in recent
    )
    if rise < MIN_RISE or not (is_clear or is_lasting):
        return None
    return _tell_held_out_rise(history, best.step, best.loss, later[-1].step, later[-1].loss)


def _tell_held_out_rise(
    history: RunHistory, best_step: int, best_loss: float, step: int, loss: float
) -> Finding | None:
    split = best_step - history.first_step + 1
    since = len(history) - split
    if split < 1 or since < 1:
        return None
    earlier = [record.step for record in history.held_out if record.step < best_step]
    start = max(0, split - since, (earlier[-1] if earlier else 0) - history.first_step + 1)
    before, after = history.mean_loss(start, split), history.mean_loss(split, len(history))
    if after >= before:
        return None  # Both rise: that is no overfitting, and the rules about the training loss see it.
    return Finding(
        code="monitor/held-out-rises",
        row=HandbookRow.HELD_OUT_RISES,
        severity=Severity.WARNING,
        step=best_step,
        message=(
            f"The held-out loss rose from {best_loss:.3g} after step {best_step} to {loss:.3g} after step "
            f"{step}, "
            f"while the training loss fell from {before:.3g} to {after:.3g}."
        ),
        evidence={
            "lowest_held_out_loss": best_loss,
            "held_out_loss": loss,
            "training_loss_before": before,
            "training_loss_after": after,
        },
    )


_NEAR_ZERO_CODES: Final = tuple(
    f"monitor/loss-near-zero-{kind}" for kind in ("memorised", "unexplained", "everywhere")
)
RULES: Final = (
    StepRule(_NEAR_ZERO_CODES, "MISSION T5; handbook row 2", Moment.STEP, _find_near_zero),
    StepRule(_NEAR_ZERO_CODES, "MISSION T5; handbook row 2", Moment.HELD_OUT, _find_near_zero),
    StepRule(
        ("monitor/loss-oscillates", "monitor/loss-diverges"),
        "MISSION T5; handbook row 3",
        Moment.STEP,
        _find_swings,
        needs_start=True,
    ),
    StepRule(("monitor/held-out-rises",), "MISSION D3; guide 5.1", Moment.HELD_OUT, _find_held_out_rise),
)
