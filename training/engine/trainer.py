"""LoRA training of a causal language model: frozen configuration and files in, adapter folder and typed result out.

Not done here: cleaning and mixing of data, diagnosis of symptoms, resuming, several devices.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from peft import PeftModel

from training.engine.adapter_files import save_adapter
from training.engine.answer_loss import AnswerLoss
from training.engine.batches import Batch, collate, count_steps, plan_steps
from training.engine.chat import ChatRow, ChatTokenizer, RenderedRows, render_rows
from training.engine.config import TrainingConfig
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.device import Precision, choose_attention, choose_precision
from training.engine.errors import DataInvalid, TrainingFailed
from training.engine.lora_dropout import use_block_dropout
from training.engine.lora_model import (
    add_lora,
    check_first_gradients,
    list_trainables,
    load_base_model,
    load_tokenizer,
)
from training.engine.progress import ProgressReporter
from training.engine.schedule import count_warmup_steps, learning_rate_factor
from training.engine.step_meter import StepMeter

FINAL_LOSS_STEPS = 10
MAX_LISTED_DROPPED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """What a training run did.

    Attributes:
        final_loss: Mean training loss in nats per trained token over the last ten steps.
        held_out_loss: Mean loss on the held-out rows at the end; None without such rows.
        num_steps: Optimiser steps.
        num_rows: Rows trained on.
        num_dropped_rows: Rows left out, each reported in the log.
        num_trained_tokens: Tokens in the loss, over all steps.
        num_input_tokens: Tokens read, padding not counted, over all steps.
        num_trainable_parameters: Of the adapter.
        padding_fraction: Padding among all computed tokens, 0-1.
        tokens_per_second: Input tokens per second of training, without loading and held-out loss.
        duration_seconds: The whole run.
        dtype: Of the base and of matrix products.
        device: "cpu" or "cuda".
    """

    final_loss: float
    held_out_loss: float | None
    num_steps: int
    num_rows: int
    num_dropped_rows: int
    num_trained_tokens: int
    num_input_tokens: int
    num_trainable_parameters: int
    padding_fraction: float
    tokens_per_second: float
    duration_seconds: float
    dtype: str
    device: str

    def to_values(self) -> dict[str, float | int | str | None]:
        """Return the result as JSON values."""
        return asdict(self)


def run_training(
    *,
    base_model: Path,
    training_data: Path,
    holdout: Path | None,
    config: TrainingConfig,
    output: Path,
    report: ProgressReporter,
    base_model_name: str | None = None,
) -> TrainingResult:
    """Train a LoRA adapter and write it as a PEFT folder.

    The same inputs and configuration give the same adapter on the same machine. torch's global random state is left as it
    was.

    Args:
        base_model: Hugging Face folder.
        training_data: JSONL file, or a folder whose *.jsonl files are all used.
        holdout: Likewise, for the held-out loss; None leaves it out.
        config: Everything else that decides the run.
        output: Adapter folder to create; complete or absent.
        report: Receives progress, and at intervals the metrics loss, learning_rate, gradient_norm, tokens_per_second,
            padding_fraction and held_out_loss.
        base_model_name: Written into adapter_config.json; None takes the folder's name.

    Raises:
        DataInvalid: Unreadable lines, or no row left to train on (``no-training-rows``).
        ChatTemplateUnsuitable: The template cannot be trained with.
        ConfigInvalid: ``target-modules-not-found``.
        BaseModelUnavailable: Base or tokenizer cannot be loaded.
        TrainingFailed: ``loss-not-finite``, ``lora-without-gradient``, ``saved-adapter-differs``, ``adapter-not-trained``.
    """
    begun = time.monotonic()
    report.progress(0.0, "reading the training data")
    tokenizer = load_tokenizer(base_model)
    rows = _read_rows(training_data, tokenizer, config, report)
    held_out = (
        _read_rows(holdout, tokenizer, config, report) if holdout else None
    )
    longest = max(len(row.input_ids) for row in (*rows.rows, *(held_out.rows if held_out else ())))
    precision = choose_precision(config.training.dtype)
    with _own_random_state(precision.device, config.training.seed):
        report.progress(0.01, "loading the base model")
        attention = choose_attention(precision, longest)
        base = load_base_model(
            base_model, dtype=precision.dtype, attention=attention, device=precision.device
        )
        model = add_lora(base, config.lora, base_model_name=base_model_name or base_model.name)
        run = _Run(model, rows.rows, held_out.rows if held_out else (), tokenizer, config, precision, report)
        run.train()
        held_out_loss = run.measure_held_out() if held_out else None
        save_adapter(model, output)
    meter = run.meter
    report.progress(1.0, "adapter saved")
    return TrainingResult(
        final_loss=run.final_loss,
        held_out_loss=held_out_loss,
        num_steps=run.num_steps,
        num_rows=len(rows.rows),
        num_dropped_rows=len(rows.dropped),
        num_trained_tokens=meter.num_trained_tokens,
        num_input_tokens=meter.num_tokens,
        num_trainable_parameters=sum(parameter.numel() for parameter in run.trainables.values()),
        padding_fraction=meter.padding_fraction,
        tokens_per_second=meter.tokens_per_second,
        duration_seconds=time.monotonic() - begun,
        dtype=precision.dtype_name,
        device=precision.device.type,
    )


class _Run:
    """One training run: the loop and what it measures."""

    def __init__(
        self,
        model: PeftModel,
        rows: Sequence[ChatRow],
        held_out: Sequence[ChatRow],
        tokenizer: ChatTokenizer,
        config: TrainingConfig,
        precision: Precision,
        report: ProgressReporter,
    ) -> None:
        self.model = model
        self.rows = rows
        self.held_out = sorted(held_out, key=lambda row: len(row.input_ids))
        self.settings = config.training
        self.precision = precision
        self.report = report
        self.pad_token_id = next(
            (token for token in (tokenizer.pad_token_id, tokenizer.eos_token_id) if token is not None), 0
        )
        self.meter = StepMeter()
        self.trainables = list_trainables(model)
        self.num_steps = count_steps(
            len(rows),
            batch_size=self.settings.per_device_batch_size,
            accumulation_steps=self.settings.gradient_accumulation_steps,
            num_epochs=self.settings.num_epochs,
            max_steps=self.settings.max_steps,
        )
        self._recent: deque[tuple[float, int]] = deque(maxlen=FINAL_LOSS_STEPS)
        self._prepare()

    @property
    def final_loss(self) -> float:
        """Mean loss per trained token over the last steps."""
        return sum(loss for loss, _ in self._recent) / sum(tokens for _, tokens in self._recent)

    def _prepare(self) -> None:
        """Switch on what the device and the configuration ask for."""
        if self.precision.device.type == "cpu":
            use_block_dropout(self.model)
        if self.settings.gradient_checkpointing:
            # Without gradients at the inputs, checkpointed blocks of a frozen model would get none at all.
            self.model.enable_input_require_grads()
            self.model.gradient_checkpointing_enable({"use_reentrant": False})
        with self.precision.autocast():
            self.loss = AnswerLoss(
                self.model.get_base_model(), self._collate([min(self.rows, key=_row_length)])
            )
        self.optimiser = torch.optim.AdamW(
            self.trainables.values(), lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )

    def train(self) -> None:
        """Run all optimiser steps.

        Raises:
            TrainingFailed: ``loss-not-finite`` or ``lora-without-gradient``.
        """
        settings = self.settings
        self.model.train()
        steps = plan_steps(
            [len(row.input_ids) for row in self.rows],
            batch_size=settings.per_device_batch_size,
            accumulation_steps=settings.gradient_accumulation_steps,
            num_steps=self.num_steps,
            seed=settings.seed,
        )
        for step, batches in enumerate(steps, start=1):
            with self.meter.measure():
                self._train_step(
                    step, [self._collate([self.rows[i] for i in indices]) for indices in batches]
                )
            is_last = step == self.num_steps
            if step == 1 or step % settings.log_every_steps == 0 or is_last:
                self._log_step(step)
            if self.held_out and step % settings.eval_every_steps == 0 and not is_last:
                self.report.metric(step, {"held_out_loss": self.measure_held_out(reports=False)})

    def _train_step(self, step: int, batches: list[Batch]) -> None:
        """Accumulate gradients weighted by trained tokens, clip, and step."""
        num_trained = sum(batch.num_trained_tokens for batch in batches)
        loss_sum = 0.0
        for batch in batches:
            with self.precision.autocast():
                loss = self.loss.sum(batch)
            # A non-finite loss must not reach the gradients, or the adapter in memory is lost for diagnosis.
            loss_value = float(loss.detach())
            if loss_value != loss_value or abs(loss_value) == float("inf"):
                raise _not_finite("loss", step, batches)
            (loss / num_trained).backward()
            loss_sum += loss_value
            self.meter.add_batch(batch)
        if step == 1:
            check_first_gradients(self.trainables)
        max_norm = self.settings.max_grad_norm or float("inf")
        norm = float(torch.nn.utils.clip_grad_norm_(self.trainables.values(), max_norm))
        if norm != norm or norm == float("inf"):
            raise _not_finite("gradient norm", step, batches)
        for group in self.optimiser.param_groups:
            group["lr"] = self._learning_rate(step)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.meter.add_step(loss_sum=loss_sum, num_trained_tokens=num_trained, gradient_norm=norm)
        self._recent.append((loss_sum, num_trained))

    def _learning_rate(self, step: int) -> float:
        factor = learning_rate_factor(
            step - 1,
            num_steps=self.num_steps,
            warmup_steps=count_warmup_steps(self.num_steps, self.settings.warmup_fraction),
            scheduler=self.settings.lr_scheduler,
        )
        return self.settings.learning_rate * factor

    def _log_step(self, step: int) -> None:
        values = self.meter.take_interval()
        self.report.metric(step, {**values, "learning_rate": self._learning_rate(step)})
        self.report.progress(
            0.03 + 0.95 * step / self.num_steps,
            f"step {step}/{self.num_steps}, loss {values['loss']:.3f}, {values['tokens_per_second']:.0f} tokens/s",
        )

    def measure_held_out(self, *, reports: bool = True) -> float:
        """Return the mean loss per trained token on the held-out rows: no gradients, no dropout."""
        # Nothing but logits is kept without gradients, so a batch may be larger than in training.
        size = max(8, self.settings.per_device_batch_size)
        loss_sum, num_trained = 0.0, 0
        self.model.eval()
        with torch.no_grad():
            for start in range(0, len(self.held_out), size):
                batch = self._collate(self.held_out[start : start + size])
                with self.precision.autocast():
                    loss_sum += float(self.loss.sum(batch))
                num_trained += batch.num_trained_tokens
        self.model.train()
        mean = loss_sum / num_trained
        if reports:
            self.report.metric(self.num_steps, {"held_out_loss": mean})
        return mean

    def _collate(self, rows: Sequence[ChatRow]) -> Batch:
        return collate(rows, pad_token_id=self.pad_token_id).to(self.precision.device)


def _row_length(row: ChatRow) -> int:
    return len(row.input_ids)


def _not_finite(what: str, step: int, batches: Sequence[Batch]) -> TrainingFailed:
    ids = [example_id for batch in batches for example_id in batch.example_ids]
    return TrainingFailed(
        "loss-not-finite",
        f"The {what} is not finite in step {step}; the examples of that step are {', '.join(ids[:20])}. "
        "Lower the learning rate, train in bfloat16 or float32, and look at these examples.",
    )


def _read_rows(
    path: Path,
    names: tuple[str, ...],
    tokenizer: ChatTokenizer,
    config: TrainingConfig,
    report: ProgressReporter,
) -> RenderedRows:
    """Read and render a file; report what is dropped.

    Raises:
        DataInvalid: ``no-training-rows`` when nothing is left.
    """
    file = list_jsonl_files(path, *names)
    rendered = render_rows(
        tokenizer,
        read_examples(file),
        system_prompt=config.data.system_prompt,
        max_length_tokens=config.training.max_length_tokens,
    )
    if rendered.dropped:
        listed = "; ".join(
            f"{item.example_id}: {item.reason}" for item in rendered.dropped[:MAX_LISTED_DROPPED]
        )
        report.log("warning", f"{file.name}: {len(rendered.dropped)} examples are left out ({listed})")
    if not rendered.rows:
        raise DataInvalid("no-training-rows", f"{file.name}: no example is left to use.")
    return rendered


@contextmanager
def _own_random_state(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch inside the block and restore its state afterwards (PEFT and dropout know only the global generators)."""
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
