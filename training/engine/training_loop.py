"""A training from its first step, or a checkpoint's, to its end: measurements, stopping, checkpoints."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from peft import PeftModel
from transformers import PreTrainedModel

from training.engine.batches import Batch, collate
from training.engine.chat import ChatRow
from training.engine.checkpoints import Checkpoint, CheckpointFolder
from training.engine.config import OptimisationSettings
from training.engine.device import Precision
from training.engine.device_memory import MemoryMeter
from training.engine.early_stopping import EarlyStopping
from training.engine.errors import TrainingFailed
from training.engine.held_out import HeldOutLoss
from training.engine.loop_models import as_trained_model
from training.engine.optimiser_state import read_moments, write_moments
from training.engine.optimiser_step import OptimiserStep, StepOutcome
from training.engine.process_group import ProcessGroup, SingleProcess
from training.engine.progress import RunReporter
from training.engine.schedule import count_warmup_steps, learning_rate_factor
from training.engine.sharded_tensors import gather_whole, spread_like
from training.engine.step_meter import StepMeter
from training.engine.step_plan import StepPlan
from training.engine.step_record import HeldOutRecord, Observers, StepObserver, StepRecord
from training.engine.trained_model import TrainedModel

FINAL_LOSS_STEPS: Final = 10


class TrainingLoop:
    """Trains a model in place.

    Attributes:
        num_steps: Optimiser steps that are planned.
        num_done: Optimiser steps done.
        num_skipped_steps: Those left out because float16 overflowed.
        resumed_from_step: Step of the checkpoint from which this process went on; 0 without one.
        stop_reason: "early-stopping" or "time-limit"; None when all planned steps were done.
        trainables: The trainable parameters by name.
        meter: Tokens and time so far.
        held_out_loss: That of the weights at the end; None without held-out rows.
        stopping: Follows the held-out loss.
    """

    def __init__(
        self,
        *,
        model: PeftModel | PreTrainedModel | TrainedModel,
        rows: Sequence[ChatRow],
        held_out: Sequence[ChatRow],
        pad_token_id: int,
        settings: OptimisationSettings,
        precision: Precision,
        report: RunReporter,
        observers: Sequence[StepObserver] = (),
        checkpoints: CheckpointFolder | None = None,
        group: ProcessGroup | None = None,
    ) -> None:
        """Prepare the model (dropout, checkpointing, sharding), the loss and the optimiser.

        Args:
            model: On the device; see `as_trained_model`.
            rows: At least one.
            held_out: For the held-out loss; may be empty.
            pad_token_id: Any valid id.
            settings: Learning rate, batches, steps.
            precision: Device and number format.
            report: Receives progress and metrics.
            observers: Are told of every step.
            checkpoints: Where the state is kept, and taken up again; None keeps none.
            group: The processes that train together; None is this one alone.
        """
        self._settings = settings
        self._report = report
        self._observers = Observers(observers)
        self._checkpoints = checkpoints
        self._group = group or SingleProcess()
        self._memory = MemoryMeter(precision.device)
        self._plan = StepPlan(rows, settings, pad_token_id=pad_token_id)
        self._recent: deque[tuple[float, int]] = deque(maxlen=FINAL_LOSS_STEPS)
        self._best: dict[str, torch.Tensor] = {}
        self._begun = self._earlier_seconds = 0.0
        self.meter = StepMeter()
        self.stopping = EarlyStopping(patience=settings.early_stopping_patience)
        self.held_out_loss: float | None = None
        self.num_done = self.num_skipped_steps = self.resumed_from_step = 0
        self.stop_reason: str | None = None
        self.num_steps = self._plan.num_steps
        self._model = as_trained_model(model)
        shortest = min(rows, key=lambda row: len(row.input_ids))
        loss = self._model.prepare(
            collate([shortest], pad_token_id=pad_token_id).to(precision.device),
            precision,
            gradient_checkpointing=settings.gradient_checkpointing,
        )
        self.trainables = self._model.trainables
        self._model.start_alike(self._group)
        self._step = OptimiserStep(
            model=self._model, loss=loss, settings=settings, precision=precision, group=self._group
        )
        self._held_out = HeldOutLoss(
            held_out,
            model=self._model,
            loss=loss,
            batch_size=settings.per_device_batch_size,
            pad_token_id=pad_token_id,
            precision=precision,
            group=self._group,
        )

    @property
    def final_loss(self) -> float:
        """Mean loss per trained token over the last steps, in nats."""
        return sum(loss for loss, _ in self._recent) / sum(tokens for _, tokens in self._recent)

    @property
    def peak_memory_bytes(self) -> int:
        """Highest memory use of this process, as in `MemoryMeter`."""
        return self._memory.read_highest_bytes()

    def train(self) -> None:
        """Run the optimiser steps, from the newest checkpoint on where there is one.

        The held-out loss is measured at intervals and at the end. After an early stop the weights are those
        of the best measurement.

        Raises:
            NotFinite: The loss or the gradient of a step.
            TrainingFailed: Something gets no gradient in the first step, ``checkpoint-unreadable``, or
                ``checkpoints-differ`` where the processes do not see the same checkpoint.
        """
        self._resume()
        self._begun = time.monotonic() - self._earlier_seconds
        self._model.module.train()
        for step, batches in self._plan.iterate(after_step=self.num_done):
            if self.stop_reason is not None:
                break
            self._run_step(step, batches)
            self._judge_time()
            is_last = step == self.num_steps or self.stop_reason is not None
            self._report_step(step, is_last=is_last)
            if self._held_out and (step % self._settings.eval_every_steps == 0 or is_last):
                self._evaluate(step)
            is_ended = is_last or self.stop_reason is not None
            if self._checkpoints is not None and step % self._settings.save_every_steps == 0 and not is_ended:
                self._save(self._checkpoints)
        self._take_best()

    def _run_step(self, step: int, batches: Sequence[Batch]) -> None:
        """Do an optimiser step and tell the observers."""
        before = self.meter.to_json()
        rate = self._learning_rate(step)
        with self.meter.measure():
            outcome = self._step.run(step, batches, learning_rate=rate)
        self._count(batches, outcome)
        self.num_done = step
        after = self.meter.to_json()
        self._observers.on_step(
            StepRecord(
                step=step,
                num_steps=self.num_steps,
                loss=outcome.loss_sum / outcome.num_trained_tokens,
                gradient_norm=outcome.gradient_norm,
                max_grad_norm=self._settings.max_grad_norm or None,
                learning_rate=rate,
                num_tokens=sum(batch.num_tokens for batch in batches),
                num_trained_tokens=outcome.num_trained_tokens,
                num_padded_tokens=sum(batch.num_padded_tokens for batch in batches),
                seconds=after["seconds"] - before["seconds"],
                memory_bytes=self._memory.read_in_use_bytes(),
            )
        )

    def _count(self, batches: Sequence[Batch], outcome: StepOutcome) -> None:
        for batch in batches:
            self.meter.add_batch(batch)
        self.meter.add_step(
            loss_sum=outcome.loss_sum,
            num_trained_tokens=outcome.num_trained_tokens,
            gradient_norm=outcome.gradient_norm,
        )
        self._recent.append((outcome.loss_sum, outcome.num_trained_tokens))
        if outcome.gradient_norm is None:
            self.num_skipped_steps += 1

    def _learning_rate(self, step: int) -> float:
        """Return the rate of a step, counted from 1."""
        return self._settings.learning_rate * learning_rate_factor(
            step - 1,
            num_steps=self.num_steps,
            warmup_steps=count_warmup_steps(self.num_steps, self._settings.warmup_fraction),
            scheduler=self._settings.lr_scheduler,
        )

    def _judge_time(self) -> None:
        seconds = time.monotonic() - self._begun
        limit = self._settings.max_minutes
        # The clocks of several processes differ; they must stop after the same step.
        (votes,) = self._group.sum_numbers(float(limit is not None and seconds > 60 * limit))
        if votes and self.num_done < self.num_steps:
            self.stop_reason = "time-limit"

    def _report_step(self, step: int, *, is_last: bool) -> None:
        if step != 1 and step % self._settings.log_every_steps != 0 and not is_last:
            return
        values = self.meter.take_interval()
        values |= {
            "learning_rate": self._learning_rate(step),
            "memory_bytes": self._memory.read_in_use_bytes(),
        }
        self._report.metric(step, values)
        self._report.progress(
            0.03 + 0.95 * step / self.num_steps,
            f"step {step}/{self.num_steps}, loss {values['loss']:.3f}, "
            f"{values['tokens_per_second']:.0f} tokens/s",
        )

    def _evaluate(self, step: int) -> None:
        """Measure the held-out loss, remember the best weights, and stop where patience is over."""
        has_own_peak = self._memory.restart_peak()
        before = self._memory.read_in_use_bytes()
        loss = self.held_out_loss = self._held_out.measure()
        self._report.metric(step, {"held_out_loss": loss})
        self._observers.on_held_out(
            HeldOutRecord(
                step=step,
                loss=loss,
                memory_before_bytes=before,
                memory_after_bytes=self._memory.read_in_use_bytes(),
                memory_peak_bytes=self._memory.read_peak_bytes() if has_own_peak else None,
            )
        )
        is_best = self.stopping.observe(step, loss)
        if is_best and self.stopping.patience is not None:
            self._best = {name: tensor.cpu().clone() for name, tensor in self._gather_weights()}
        if self.stopping.should_stop and step < self.num_steps:
            self.stop_reason = "early-stopping"

    def _take_best(self) -> None:
        """After an early stop, go back to the weights with the lowest held-out loss."""
        if self.stop_reason != "early-stopping" or not self._best:
            return
        self._write_weights(self._best)
        self.held_out_loss = self.stopping.best_loss
        self._report.log(
            "info",
            f"The held-out loss has not fallen since step {self.stopping.best_step}; training stopped after "
            f"step {self.num_done}, and the weights are those of step {self.stopping.best_step}.",
        )

    def _save(self, folder: CheckpointFolder) -> None:
        weights = dict(self._gather_weights())
        moments = read_moments(self._step.optimiser, self.trainables)
        if self._group.rank != 0:
            return
        progress: dict[str, Any] = {
            "meter": self.meter.to_json(),
            "recent": [list(item) for item in self._recent],
            "stopping": self.stopping.to_json(),
            "loss_scale": self._step.scale.to_json(),
            "num_skipped_steps": self.num_skipped_steps,
            "seconds": time.monotonic() - self._begun,
        }
        folder.save(
            Checkpoint(
                step=self.num_done, trainables=weights, moments=moments, best=self._best, progress=progress
            )
        )

    def _resume(self) -> None:
        checkpoint = self._checkpoints.load_latest() if self._checkpoints is not None else None
        self._agree_on_step(0 if checkpoint is None else checkpoint.step)
        if checkpoint is None:
            return
        self._write_weights(checkpoint.trainables)
        write_moments(self._step.optimiser, self.trainables, checkpoint.moments)
        self._best = dict(checkpoint.best)
        progress = checkpoint.progress
        self.meter.load_json(progress["meter"])
        self._recent.extend((float(loss), int(tokens)) for loss, tokens in progress["recent"])
        self.stopping = EarlyStopping.from_json(progress["stopping"])
        self._step.scale.load_json(progress["loss_scale"])
        self.num_skipped_steps = int(progress["num_skipped_steps"])
        self._earlier_seconds = float(progress["seconds"])
        self.num_done = self.resumed_from_step = checkpoint.step
        self._report.log("info", f"Training goes on from the checkpoint of step {checkpoint.step}.")

    def _agree_on_step(self, step: int) -> None:
        (total, squares) = self._group.sum_numbers(step, step * step)
        # By the equality case of Cauchy-Schwarz: n times the sum of squares is the squared sum.
        if self._group.size * squares != total * total:
            raise TrainingFailed(
                "checkpoints-differ",
                f"The processes do not see the same checkpoint; process {self._group.rank} would go on from "
                f"step {step}. Give all of them one folder for checkpoints that they share.",
            )

    def _gather_weights(self) -> list[tuple[str, torch.Tensor]]:
        return [(name, gather_whole(parameter.detach())) for name, parameter in self.trainables.items()]

    def _write_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.trainables.items():
                parameter.copy_(spread_like(weights[name], parameter))
