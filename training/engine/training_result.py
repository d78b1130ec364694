"""What a training run did."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """What a training run did.

    Attributes:
        final_loss: Mean training loss in nats per trained token over the last ten steps.
        held_out_loss: Mean loss on the held-out rows of the weights that were saved; None without such rows.
        best_step: Step with the lowest held-out loss; None without such rows.
        num_steps: Optimiser steps done.
        num_planned_steps: Optimiser steps that the configuration asked for.
        num_skipped_steps: Steps left out because float16 overflowed under its loss scale.
        stop_reason: "early-stopping" or "time-limit"; None when all planned steps were done.
        resumed_from_step: Step of the checkpoint from which the last attempt went on; 0 without one.
        num_rows: Rows trained on.
        num_dropped_rows: Training rows left out, reported in the log.
        num_trained_tokens: Tokens in the loss, over all steps.
        num_input_tokens: Tokens read, padding not counted, over all steps.
        num_trainable_parameters: Of the adapter, or of the model.
        padding_fraction: Padding among all computed tokens, 0-1.
        tokens_per_second: Input tokens per second of training, without loading and held-out loss.
        duration_seconds: The whole run, of the last attempt.
        num_processes: Processes that trained together.
        peak_memory_bytes: Highest memory use of the first process: allocated on the device, or its resident
            set without one.
        dtype: Of matrix products, and of a frozen base.
        device: "cpu" or "cuda".
        method: "lora", "full" or "qlora"; the last is for exploring, so its record says it (MISSION B4).
    """

    final_loss: float
    held_out_loss: float | None
    best_step: int | None
    num_steps: int
    num_planned_steps: int
    num_skipped_steps: int
    stop_reason: str | None
    resumed_from_step: int
    num_rows: int
    num_dropped_rows: int
    num_trained_tokens: int
    num_input_tokens: int
    num_trainable_parameters: int
    padding_fraction: float
    tokens_per_second: float
    duration_seconds: float
    num_processes: int
    peak_memory_bytes: int
    dtype: str
    device: str
    method: str

    def to_values(self) -> dict[str, float | int | str | None]:
        """Return the result as JSON values."""
        return asdict(self)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "TrainingResult":
        """Read what `to_values` gave."""
        return cls(**values)
