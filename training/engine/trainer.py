"""LoRA training of a causal language model: configuration and files in, adapter folder and typed result out.

Not done here: cleaning and mixing of data, diagnosis of symptoms, resuming, several devices.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from training.engine.adapter_files import save_adapter
from training.engine.chat import ChatRow, ChatTokenizer, render_rows
from training.engine.config import TrainingConfig
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.device import choose_attention, choose_precision
from training.engine.errors import DataInvalid
from training.engine.lora_model import add_lora, load_base_model, load_tokenizer, require_trainable
from training.engine.progress import ProgressReporter
from training.engine.training_loop import TrainingLoop

MAX_LISTED_DROPPED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """What a training run did.

    Attributes:
        final_loss: Mean training loss in nats per trained token over the last ten steps.
        held_out_loss: Mean loss on the held-out rows at the end; None without such rows.
        num_steps: Optimiser steps.
        num_rows: Rows trained on.
        num_dropped_rows: Training rows left out, reported in the log.
        num_trained_tokens: Tokens in the loss, over all steps.
        num_input_tokens: Tokens read, padding not counted, over all steps.
        num_trainable_parameters: Of the adapter.
        padding_fraction: Padding among all computed tokens, 0-1.
        tokens_per_second: Input tokens per second of training, without loading and held-out loss.
        duration_seconds: The whole run.
        dtype: Of the base and of matrix products.
        device: "cpu" or "cuda".
        method: "lora" or "qlora"; the latter is for exploring, so its record says it (MISSION B4).
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
    method: str

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

    The same inputs and configuration give the same adapter on the same machine with the same number of
    threads. torch's global random state is left as it was.

    Args:
        base_model: Hugging Face folder.
        training_data: JSONL file, or a folder whose ``*.jsonl`` files are all used.
        holdout: Likewise, for the held-out loss; None leaves it out.
        config: Everything else that decides the run.
        output: Adapter folder to create; complete or absent.
        report: Receives progress, and at intervals the metrics loss, learning_rate, gradient_norm,
            tokens_per_second, padding_fraction and held_out_loss.
        base_model_name: Written into adapter_config.json; None takes the folder's name.

    Raises:
        DataInvalid: Unreadable lines, or no row left to train on (``no-rows-left``).
        ChatTemplateUnsuitable: The template cannot be trained with.
        ConfigInvalid: ``target-modules-not-found``, ``layers-out-of-range``, ``method-not-supported``,
            ``qlora-needs-cuda`` or ``qlora-needs-bitsandbytes``.
        BaseModelUnavailable: Base or tokenizer cannot be loaded.
        TrainingFailed: ``loss-not-finite``, ``lora-without-gradient``, ``saved-adapter-differs`` or
            ``adapter-not-trained``.
        FileExistsError: If ``output`` exists and is not empty.
    """
    begun = time.monotonic()
    precision = choose_precision(config.training.dtype)
    require_trainable(config.method, precision.device)
    report.progress(0.0, "reading the training data")
    tokenizer = load_tokenizer(base_model)
    rows, num_dropped = _read_rows(training_data, tokenizer, config, report)
    held_out, _ = _read_rows(holdout, tokenizer, config, report) if holdout else ([], 0)
    attention = choose_attention(precision, max(len(row.input_ids) for row in (*rows, *held_out)))
    with _own_random_state(precision.device, config.training.seed):
        report.progress(0.01, "loading the base model")
        base = load_base_model(
            base_model,
            dtype=precision.dtype,
            attention=attention,
            device=precision.device,
            has_4bit_weights=config.method == "qlora",
        )
        model = add_lora(base, config.lora, base_model_name=base_model_name or base_model.name)
        loop = TrainingLoop(
            model=model,
            rows=rows,
            held_out=held_out,
            pad_token_id=_pad_token_id(tokenizer),
            settings=config.training,
            precision=precision,
            report=report,
        )
        loop.train()
        save_adapter(model, output)
    report.progress(1.0, "adapter saved")
    return TrainingResult(
        final_loss=loop.final_loss,
        held_out_loss=loop.held_out_loss,
        num_steps=loop.num_steps,
        num_rows=len(rows),
        num_dropped_rows=num_dropped,
        num_trained_tokens=loop.meter.num_trained_tokens,
        num_input_tokens=loop.meter.num_tokens,
        num_trainable_parameters=sum(parameter.numel() for parameter in loop.trainables.values()),
        padding_fraction=loop.meter.padding_fraction,
        tokens_per_second=loop.meter.tokens_per_second,
        duration_seconds=time.monotonic() - begun,
        dtype=precision.dtype_name,
        device=precision.device.type,
        method=config.method,
    )


def _read_rows(
    path: Path, tokenizer: ChatTokenizer, config: TrainingConfig, report: ProgressReporter
) -> tuple[list[ChatRow], int]:
    """Read and render a file or folder; report what is dropped and return its number beside the rows.

    Raises:
        DataInvalid: ``no-rows-left`` when nothing is left.
    """
    rows: list[ChatRow] = []
    num_dropped = 0
    for file in list_jsonl_files(path):
        rendered = render_rows(
            tokenizer,
            read_examples(file),
            system_prompt=config.data.system_prompt,
            max_length_tokens=config.training.max_length_tokens,
        )
        rows += rendered.rows
        num_dropped += len(rendered.dropped)
        if rendered.dropped:
            shown = rendered.dropped[:MAX_LISTED_DROPPED]
            listed = "; ".join(f"{item.example_id}: {item.reason}" for item in shown)
            report.log("warning", f"{file.name}: {len(rendered.dropped)} examples left out ({listed})")
    if not rows:
        raise DataInvalid("no-rows-left", f"The input {path.name} holds no example that can be used.")
    return rows, num_dropped


def _pad_token_id(tokenizer: ChatTokenizer) -> int:
    """Return any valid id: padding is masked and never in the loss."""
    candidates = (tokenizer.pad_token_id, tokenizer.eos_token_id)
    return next((token for token in candidates if token is not None), 0)


@contextmanager
def _own_random_state(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch inside the block and restore its state after it.

    PEFT's initial weights and dropout draw from the global generators and take no other.
    """
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
