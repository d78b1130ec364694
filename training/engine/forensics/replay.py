"""Doing steps of a training again, until one is bad.

The repetition is exact on a CPU: `batch_seed` makes dropout independent of history, and the order of rows
follows from the seed. On a GPU sums may be added in another order.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from training.engine.checkpoints import Checkpoint, CheckpointFolder
from training.engine.errors import NotFinite
from training.engine.forensics.activation_watch import ActivationWatch
from training.engine.forensics.evidence import BadPart
from training.engine.forensics.state_check import (
    copy_state,
    copy_tensors,
    is_finite,
    list_bad_tensors,
    write_trainables,
)
from training.engine.forensics.step_history import StepHistory
from training.engine.forensics.training_inputs import TrainingInputs
from training.engine.progress import SilentReporter
from training.engine.step_record import HeldOutRecord, StepRecord
from training.engine.trained_model import TrainedModel
from training.engine.training_loop import TrainingLoop


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayLimits:
    """How much is done again at most.

    Attributes:
        max_steps: Optimiser steps: two intervals of checkpoints by default.
        max_seconds: After this time no further step is begun.
    """

    max_steps: int = 400
    max_seconds: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How a repetition went.

    Attributes:
        before: The state before the bad step; without one, the last state reached.
        bad_step: First step with something that is not finite; None when none was reached.
        what: The first such thing; None likewise.
        history: The last sound steps, ascending, at most `step_history.HISTORY_STEPS`.
        limit: The limit that ended it, in words; "" when none did.
    """

    before: Checkpoint
    bad_step: int | None
    what: BadPart | None
    history: tuple[StepRecord, ...]
    limit: str


class _Ended(Exception):
    """The repetition need not go on."""

    def __init__(self, *, bad_step: int | None = None, what: BadPart | None = None, limit: str = "") -> None:
        super().__init__(limit)
        self.bad_step = bad_step
        self.what = what
        self.limit = limit


class _StateInMemory(CheckpointFolder):
    """Gives the loop the state to begin with, and keeps only the newest; it writes no files."""

    def __init__(self, start: Checkpoint) -> None:
        super().__init__(Path(), identity="")
        self._start = start
        self.latest = start

    def save(self, checkpoint: Checkpoint) -> Path:
        bad = list_bad_tensors(checkpoint)
        if bad:
            is_parameter = not all(is_finite(tensor) for tensor in checkpoint.trainables.values())
            what = BadPart.PARAMETER if is_parameter else BadPart.MOMENT
            raise _Ended(bad_step=checkpoint.step, what=what)
        self.latest = copy_state(checkpoint)
        return Path()

    def load_latest(self) -> Checkpoint | None:
        return self._start if self._start.step else None

    def list_steps(self) -> tuple[int, ...]:
        return (self._start.step,) if self._start.step else ()


class _Watch:
    """Ends the repetition at the first bad step, at the step asked for, or at a limit."""

    def __init__(self, start_step: int, last_step: int | None, limits: ReplayLimits) -> None:
        self.history = StepHistory()
        self.trainables: Sequence[torch.Tensor] = ()
        self.activations: ActivationWatch | None = None
        self._last_step = last_step
        self._limits = limits
        self._start_step = start_step
        self._begun = time.monotonic()

    def on_step(self, record: StepRecord) -> None:
        # A step that float16's scale leaves out has no norm; its activations are those of any other step.
        if self.activations is not None and self.activations.take_first_bad() is not None:
            raise _Ended(bad_step=record.step, what=BadPart.ACTIVATION)
        if not all(is_finite(tensor) for tensor in self.trainables):
            raise _Ended(bad_step=record.step, what=BadPart.PARAMETER)
        self.history.on_step(record)
        if record.step == self._last_step:
            raise _Ended()
        self._judge_limits(record.step)

    def on_held_out(self, record: HeldOutRecord) -> None:
        """Nothing is held out here."""

    def _judge_limits(self, step: int) -> None:
        seconds = time.monotonic() - self._begun
        if step - self._start_step >= self._limits.max_steps:
            raise _Ended(limit=f"Only {self._limits.max_steps} steps were repeated, up to step {step}.")
        if seconds > self._limits.max_seconds:
            raise _Ended(limit=f"Repeating steps ended after {seconds:.0f} seconds, at step {step}.")


def replay_steps(
    model: TrainedModel,
    inputs: TrainingInputs,
    start: Checkpoint,
    *,
    untrained: Checkpoint,
    last_step: int | None,
    limits: ReplayLimits,
) -> Replay:
    """Repeat the steps after a state until one is bad: its loss, gradient, an activation, or a parameter or
    moment after it is not finite.

    Args:
        model: Its trainable parameters are overwritten.
        inputs: Of the training.
        start: The state to begin with.
        untrained: What `take_start` gave; the loop is made in this state, as that of the training was.
        last_step: Ends after this step; None goes on to the end of the training.
        limits: How much is done at most.
    """
    write_trainables(model, untrained.trainables)
    store = _StateInMemory(start)
    watch = _Watch(start.step, last_step, limits)
    loop = TrainingLoop(
        model=model,
        rows=inputs.rows,
        held_out=(),
        pad_token_id=inputs.pad_token_id,
        settings=replace(inputs.settings, save_every_steps=1, max_minutes=None, early_stopping_patience=None),
        precision=inputs.precision,
        report=SilentReporter(),
        observers=(watch,),
        checkpoints=store,
    )
    watch.trainables = tuple(loop.trainables.values())
    watch.activations = ActivationWatch(model.module, only_leaves=True)
    ended = _run(loop, watch.activations)
    return Replay(
        before=store.latest,
        bad_step=ended.bad_step,
        what=ended.what,
        history=watch.history.records,
        limit=ended.limit,
    )


def take_start(model: TrainedModel) -> Checkpoint:
    """Return the state of a model before its first step."""
    return Checkpoint(step=0, trainables=copy_tensors(model.trainables), moments={})


def _run(loop: TrainingLoop, activations: ActivationWatch) -> _Ended:
    try:
        with activations:
            loop.train()
    except _Ended as ended:
        return ended
    except NotFinite as error:
        return _Ended(bad_step=error.step, what=BadPart(error.what))
    return _Ended()
