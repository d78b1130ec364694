"""The optimiser steps of a training run, and what is measured in them."""

import math
from collections import deque
from collections.abc import Sequence

import torch
from peft import PeftModel

from training.engine.answer_loss import AnswerLoss
from training.engine.batches import Batch, collate, count_steps, plan_steps
from training.engine.chat import ChatRow
from training.engine.config import OptimisationSettings
from training.engine.device import Precision
from training.engine.errors import TrainingFailed
from training.engine.lora_dropout import use_block_dropout
from training.engine.lora_model import check_first_gradients, list_trainables
from training.engine.progress import ProgressReporter
from training.engine.schedule import count_warmup_steps, learning_rate_factor
from training.engine.step_meter import StepMeter

FINAL_LOSS_STEPS = 10
MIN_HELD_OUT_BATCH_SIZE = 8
"""Held-out batches keep no activations, so they may be larger than those of training."""


class TrainingLoop:
    """Trains the adapter of a model in place.

    Attributes:
        num_steps: Optimiser steps to do.
        trainables: The adapter's parameters by name.
        meter: Tokens and time so far.
        held_out_loss: The last measured one; None without held-out rows.
    """

    def __init__(
        self,
        *,
        model: PeftModel,
        rows: Sequence[ChatRow],
        held_out: Sequence[ChatRow],
        pad_token_id: int,
        settings: OptimisationSettings,
        precision: Precision,
        report: ProgressReporter,
    ) -> None:
        """Prepare the model (dropout, checkpointing), the loss and the optimiser.

        Args:
            model: With a trainable adapter, on the device.
            rows: At least one.
            held_out: For the held-out loss; may be empty.
            pad_token_id: Any valid id.
            settings: Learning rate, batches, steps.
            precision: Device and number format.
            report: Receives progress and metrics.
        """
        self._model = model
        self._rows = rows
        self._held_out = sorted(held_out, key=lambda row: len(row.input_ids))
        self._pad_token_id = pad_token_id
        self._settings = settings
        self._precision = precision
        self._report = report
        self._recent: deque[tuple[float, int]] = deque(maxlen=FINAL_LOSS_STEPS)
        self.meter = StepMeter()
        self.held_out_loss: float | None = None
        self.trainables = list_trainables(model)
        self.num_steps = count_steps(
            len(rows),
            batch_size=settings.per_device_batch_size,
            accumulation_steps=settings.gradient_accumulation_steps,
            num_epochs=settings.num_epochs,
            max_steps=settings.max_steps,
        )
        self._prepare_model()
        with precision.autocast():
            shortest = min(rows, key=lambda row: len(row.input_ids))
            self._loss = AnswerLoss(model.get_base_model(), self._collate([shortest]))
        self._optimiser = torch.optim.AdamW(
            self.trainables.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    @property
    def final_loss(self) -> float:
        """Mean loss per trained token over the last steps, in nats."""
        return sum(loss for loss, _ in self._recent) / sum(tokens for _, tokens in self._recent)

    def _prepare_model(self) -> None:
        if self._precision.device.type == "cpu":
            use_block_dropout(self._model)
        if self._settings.gradient_checkpointing:
            # Without gradients at the inputs, checkpointed blocks of a frozen model would get none at all.
            self._model.enable_input_require_grads()
            self._model.gradient_checkpointing_enable({"use_reentrant": False})

    def train(self) -> None:
        """Run all optimiser steps and measure the held-out loss at intervals and at the end.

        Raises:
            TrainingFailed: ``loss-not-finite`` or ``lora-without-gradient``.
        """
        settings = self._settings
        steps = plan_steps(
            [len(row.input_ids) for row in self._rows],
            batch_size=settings.per_device_batch_size,
            accumulation_steps=settings.gradient_accumulation_steps,
            num_steps=self.num_steps,
            seed=settings.seed,
        )
        self._model.train()
        for step, batches in enumerate(steps, start=1):
            is_last = step == self.num_steps
            with self.meter.measure():
                self._train_step(step, [self._collate([self._rows[i] for i in rows]) for rows in batches])
            if step == 1 or step % settings.log_every_steps == 0 or is_last:
                self._log_step(step)
            if self._held_out and (step % settings.eval_every_steps == 0 or is_last):
                self.held_out_loss = self._measure_held_out()
                self._report.metric(step, {"held_out_loss": self.held_out_loss})

    def _train_step(self, step: int, batches: Sequence[Batch]) -> None:
        """Accumulate gradients weighted by trained tokens, clip, and step."""
        num_trained = sum(batch.num_trained_tokens for batch in batches)
        loss_sum = 0.0
        for batch in batches:
            loss_sum += self._accumulate(step, batch, num_trained)
        if step == 1:
            check_first_gradients(self.trainables)
        norm = float(
            torch.nn.utils.clip_grad_norm_(self.trainables.values(), self._settings.max_grad_norm or math.inf)
        )
        if not math.isfinite(norm):
            raise _not_finite("gradient norm", step, batches)
        for group in self._optimiser.param_groups:
            group["lr"] = self._learning_rate(step)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        self.meter.add_step(loss_sum=loss_sum, num_trained_tokens=num_trained, gradient_norm=norm)
        self._recent.append((loss_sum, num_trained))

    def _accumulate(self, step: int, batch: Batch, num_trained: int) -> float:
        """Add a batch's gradients, weighted by its share of the step's trained tokens; return its summed
        loss.

        Weighting batches alike instead would let short answers count more (transformers issue 34191).
        """
        with self._precision.autocast():
            loss = self._loss.sum(batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise _not_finite("loss", step, [batch])
        torch.autograd.backward(loss / num_trained)
        self.meter.add_batch(batch)
        return value

    def _learning_rate(self, step: int) -> float:
        """Return the rate of a step, counted from 1."""
        return self._settings.learning_rate * learning_rate_factor(
            step - 1,
            num_steps=self.num_steps,
            warmup_steps=count_warmup_steps(self.num_steps, self._settings.warmup_fraction),
            scheduler=self._settings.lr_scheduler,
        )

    def _log_step(self, step: int) -> None:
        values = self.meter.take_interval()
        self._report.metric(step, {**values, "learning_rate": self._learning_rate(step)})
        self._report.progress(
            0.03 + 0.95 * step / self.num_steps,
            f"step {step}/{self.num_steps}, loss {values['loss']:.3f}, "
            f"{values['tokens_per_second']:.0f} tokens/s",
        )

    def _measure_held_out(self) -> float:
        """Return the mean loss per trained token on the held-out rows: no gradients, no dropout."""
        size = max(MIN_HELD_OUT_BATCH_SIZE, self._settings.per_device_batch_size)
        loss_sum, num_trained = 0.0, 0
        self._model.eval()
        with torch.no_grad(), self._precision.autocast():
            for start in range(0, len(self._held_out), size):
                batch = self._collate(self._held_out[start : start + size])
                loss_sum += float(self._loss.sum(batch))
                num_trained += batch.num_trained_tokens
        self._model.train()
        return loss_sum / num_trained

    def _collate(self, rows: Sequence[ChatRow]) -> Batch:
        return collate(rows, pad_token_id=self._pad_token_id).to(self._precision.device)


def _not_finite(what: str, step: int, batches: Sequence[Batch]) -> TrainingFailed:
    ids = [example_id for batch in batches for example_id in batch.example_ids]
    return TrainingFailed(
        "loss-not-finite",
        f"The {what} is not finite in step {step}; the examples of it are {', '.join(ids[:20])}. "
        "Lower the learning rate and look at these examples; the adapter was not saved.",
    )
