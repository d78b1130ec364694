"""From a training that stopped on a number that is not finite to the first bad step and its likely cause."""

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from training.engine.chat import ChatRow
from training.engine.checkpoints import Checkpoint
from training.engine.device import Precision
from training.engine.errors import NotFinite, TrainingFailed
from training.engine.forensics.bisection import find_last_sound
from training.engine.forensics.causes import judge_cause
from training.engine.forensics.evidence import BadPart, Evidence, ExampleEvidence, NotFiniteReport
from training.engine.forensics.replay import Replay, ReplayLimits, replay_steps, take_start
from training.engine.forensics.state_check import (
    find_largest_parameter,
    is_finite,
    list_bad_parameters,
    list_bad_tensors,
    measure_norm,
    write_trainables,
)
from training.engine.forensics.step_examination import StepExamination, StepExaminer
from training.engine.forensics.step_history import HISTORY_STEPS
from training.engine.forensics.training_inputs import TrainingInputs
from training.engine.progress import RunReporter
from training.engine.random_state import own_random_state
from training.engine.step_record import StepRecord

logger = logging.getLogger(__name__)

NUM_PROBES: Final = 4
"""Other examples with which a state is tried: enough to tell a bad state from a bad example."""
RECORD_NAME: Final = "not_finite"


def explain_not_finite(
    error: NotFinite,
    read_inputs: Callable[[], TrainingInputs],
    report: RunReporter,
    *,
    history: Sequence[StepRecord] = (),
    stopped: Mapping[str, torch.Tensor] | None = None,
    limits: ReplayLimits | None = None,
) -> TrainingFailed:
    """Investigate, record what was found as "not_finite", and return the error to raise in place of the plain
    one; whatever goes wrong on the way, the plain one comes back.

    Call it with the training's own model let go of, since another is loaded; what the frames of the error
    hold is let go of here.

    Args:
        error: What the training raised.
        read_inputs: Returns what the training was made of; it may fail.
        report: Receives the record and a line of log.
        history: The last steps of the training; see `StepHistory`.
        stopped: The trainable parameters when it was raised; see `investigate`.
        limits: How much is computed at most.
    """
    report.log(
        "info", f"The {error.what} of step {error.step} is not finite; looking for the first bad step."
    )
    traceback.clear_frames(error.__traceback__)
    try:
        found = investigate(read_inputs(), error=error, history=history, stopped=stopped, limits=limits)
        report.record(RECORD_NAME, found.to_json())
    except Exception as failure:
        # Out of memory, an unreadable base: nothing may stand in the way of the error that is explained here.
        logger.exception("The investigation of step %s failed", error.step)
        report.log("warning", f"The first bad step could not be looked for: {failure}")
        return error
    judgement = found.judgement
    return TrainingFailed(
        error.code,
        f"{judgement.message} Likely cause: {judgement.cause}. {judgement.treatment} Nothing was saved.",
    )


def investigate(
    inputs: TrainingInputs,
    *,
    error: NotFinite | None = None,
    history: Sequence[StepRecord] = (),
    stopped: Mapping[str, torch.Tensor] | None = None,
    limits: ReplayLimits | None = None,
) -> NotFiniteReport:
    """Find the first bad step of a training, and why it is.

    The checkpoints are bisected to the last sound one, the steps after it are repeated until one has a loss,
    gradient, activation, parameter or moment that is not finite, and that step is taken apart.

    Args:
        inputs: Of the training.
        error: What it raised; None looks for a bad step from the last sound checkpoint on.
        history: The last steps of the training; those that are repeated are known without it.
        stopped: The trainable parameters when it was raised, which are those before the failed step. They are
            used where the limits do not let that step be reached.
        limits: How much is computed at most.

    Raises:
        BaseModelUnavailable: From the inputs' loader.
    """
    with own_random_state(inputs.precision.device, inputs.settings.seed):
        return _Investigation(inputs, error, history, stopped, limits or ReplayLimits()).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """The examined step and the examples around it."""

    examination: StepExamination | None
    examples: tuple[ExampleEvidence, ...]
    elsewhere: tuple[ExampleEvidence, ...]
    bad_before_training: frozenset[str]


class _Investigation:
    def __init__(
        self,
        inputs: TrainingInputs,
        error: NotFinite | None,
        history: Sequence[StepRecord],
        stopped: Mapping[str, torch.Tensor] | None,
        limits: ReplayLimits,
    ) -> None:
        self._inputs = inputs
        self._failed_step = None if error is None else error.step
        self._what = None if error is None else BadPart(error.what)
        self._history = history
        self._stopped = stopped
        self._limits = limits
        self._model = inputs.load_model(inputs.precision)
        self._untrained = take_start(self._model)
        self._bad_base = list_bad_parameters(self._model.module)
        self._largest_base = find_largest_parameter(self._model.module)
        self._examiner = StepExaminer(self._model, inputs, inputs.precision)

    def run(self) -> NotFiniteReport:
        probes = self._choose_probes()
        state = find_last_sound(
            self._inputs.checkpoints,
            before_step=self._failed_step,
            is_sound=lambda checkpoint: self._is_sound(checkpoint, probes),
        )
        start = state.checkpoint or self._untrained
        replay = self._replay(start)
        limit, damaged = replay.limit, None
        if state.unsound is not None and _leaves_open(state.unsound, replay):
            # A finite state with losses that are not may be where training leads, if only it got that far.
            damaged = state.unsound if list_bad_tensors(state.unsound) or not limit else None
            start = state.unsound
            replay = self._replay(start)
        return self._conclude(start, replay, damaged, probes, limit or replay.limit)

    def _replay(self, start: Checkpoint) -> Replay:
        return replay_steps(
            self._model,
            self._inputs,
            start,
            untrained=self._untrained,
            last_step=self._failed_step,
            limits=self._limits,
        )

    def _choose_probes(self) -> tuple[ChatRow, ...]:
        """Return a few short rows that the untrained model computes: what they give tells of the state."""
        write_trainables(self._model, self._untrained.trainables)
        ordered = sorted(self._inputs.rows, key=lambda row: len(row.input_ids))[: 2 * NUM_PROBES]
        seen = self._examiner.examine_examples(ordered, seed=self._inputs.settings.seed)
        return tuple(row for row, example in zip(ordered, seen, strict=True) if example.is_finite)[
            :NUM_PROBES
        ]

    def _is_sound(self, checkpoint: Checkpoint, probes: Sequence[ChatRow]) -> bool:
        if list_bad_tensors(checkpoint):
            return False
        write_trainables(self._model, checkpoint.trainables)
        seen = self._examiner.examine_examples(probes, seed=self._inputs.settings.seed)
        return all(example.is_finite for example in seen)

    def _conclude(
        self,
        start: Checkpoint,
        replay: Replay,
        damaged: Checkpoint | None,
        probes: Sequence[ChatRow],
        limit: str,
    ) -> NotFiniteReport:
        before, step = self._choose_step(replay)
        trial = self._try_step(before, step, probes)
        is_wide_finite, wide_dtype = self._try_wide(before, step, trial.examination)
        bad_step, what = replay.bad_step, replay.what
        if bad_step is None and before.trainables is self._stopped:
            bad_step, what = self._failed_step, self._what
        history = self._merge_history(replay, bad_step)
        evidence = Evidence(
            failed_step=self._failed_step,
            first_bad_step=bad_step,
            what=what,
            dtype=self._inputs.precision.dtype_name,
            bad_base_tensors=self._bad_base,
            largest_base_tensor=self._largest_base,
            bad_state_tensors=() if damaged is None else list_bad_tensors(damaged),
            damaged_step=None if damaged is None else damaged.step,
            examples=trial.examples,
            sound_elsewhere=sum(example.is_finite for example in trial.elsewhere),
            num_elsewhere=len(trial.elsewhere),
            bad_before_training=trial.bad_before_training,
            is_finite_when_wide=is_wide_finite,
            wide_dtype=wide_dtype,
            losses=tuple((record.step, record.loss) for record in history),
            gradient_norms=tuple(
                (record.step, record.gradient_norm) for record in history if record.gradient_norm is not None
            ),
            weight_growth=_growth(before, self._untrained),
            limit=limit,
        )
        return NotFiniteReport(
            evidence=evidence,
            judgement=judge_cause(evidence),
            checkpoint_step=start.step,
            modules=() if trial.examination is None else trial.examination.modules,
            first_bad_module=None if trial.examination is None else trial.examination.first_bad_module,
        )

    def _merge_history(self, replay: Replay, bad_step: int | None) -> list[StepRecord]:
        """Return the last steps before the bad one, those of the training first."""
        records = {record.step: record for record in (*replay.history, *self._history)}
        steps = [step for step in sorted(records) if bad_step is None or step < bad_step]
        return [records[step] for step in steps[-HISTORY_STEPS:]]

    def _choose_step(self, replay: Replay) -> tuple[Checkpoint, int | None]:
        """Return the state and the step to take apart: the first bad one, else the one that failed."""
        if replay.bad_step is not None:
            return replay.before, replay.bad_step
        if replay.limit and self._stopped is not None and all(map(is_finite, self._stopped.values())):
            step = self._failed_step or 1
            return Checkpoint(step=step - 1, trainables=self._stopped, moments={}), step
        return replay.before, self._failed_step

    def _try_step(self, before: Checkpoint, step: int | None, probes: Sequence[ChatRow]) -> _Trial:
        if step is None:
            return _Trial(examination=None, examples=(), elsewhere=(), bad_before_training=frozenset())
        write_trainables(self._model, before.trainables)
        examination = self._examiner.examine_batches(step)
        examples = self._examiner.examine_step(step)
        ids = {example.example_id for example in examples}
        others = [row for row in probes if row.example_id not in ids]
        elsewhere = self._examiner.examine_examples(others, seed=self._inputs.settings.seed)
        write_trainables(self._model, self._untrained.trainables)
        bad = {example.example_id for example in examples if not example.is_finite}
        untrained = self._examiner.examine_step(step) if bad else ()
        return _Trial(
            examination=examination,
            examples=examples,
            elsewhere=elsewhere,
            bad_before_training=frozenset(
                example.example_id
                for example in untrained
                if example.example_id in bad and not example.is_finite
            ),
        )

    def _try_wide(
        self, before: Checkpoint, step: int | None, narrow: StepExamination | None
    ) -> tuple[bool | None, str]:
        """Compute a step that is not finite in float16 in a format of float32's range.

        The model is let go of first, so that there are never two in memory.
        """
        precision = self._inputs.precision
        if precision.dtype != torch.float16 or step is None:
            return None, ""
        # On a GPU float32 may not fit beside what is there; bfloat16 has its range and the size of float16.
        wide = Precision(
            precision.device, torch.bfloat16 if precision.device.type == "cuda" else torch.float32
        )
        del self._model, self._examiner
        model = self._inputs.load_model(wide)
        examiner = StepExaminer(model, self._inputs, wide)
        write_trainables(model, before.trainables)
        return examiner.examine_batches(step).is_finite, wide.dtype_name


def _leaves_open(unsound: Checkpoint, replay: Replay) -> bool:
    """Whether doing the steps again does not show how a stored state became what it is."""
    if replay.bad_step is None:
        return True
    return replay.bad_step > unsound.step and bool(list_bad_tensors(unsound))


def _growth(state: Checkpoint, untrained: Checkpoint) -> float:
    return measure_norm(state.trainables.values()) / max(measure_norm(untrained.trainables.values()), 1e-12)
