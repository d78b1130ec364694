"""Small real trainings on the tiny model, watched by the monitor."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.training.engine.planted.material import Line, make_lines, pretrained_llama, write_lines
from training.engine.config import TrainingConfig
from training.engine.monitor.history import RunFacts
from training.engine.monitor.monitor import Monitor
from training.engine.progress import SilentReporter
from training.engine.step_record import StepObserver
from training.engine.trainer import run_training

DEFAULTS: Mapping[str, Any] = {
    "learning_rate": 2e-3, "max_steps": 60, "per_device_batch_size": 8, "gradient_accumulation_steps": 1,
    "gradient_checkpointing": False, "dtype": "float32", "eval_every_steps": 20,
}  # fmt: skip
"""A healthy run. The rate is ten times a real model's, because this one is a thousand times smaller."""


def train_watched(
    folder: Path,
    *,
    lines: Sequence[Line] | None = None,
    held_out: Sequence[Line] | None = (),
    base: Path | None = None,
    method: str = "lora",
    lora: Mapping[str, Any] | None = None,
    facts: RunFacts | None = None,
    observers: Sequence[StepObserver] = (),
    **training: Any,
) -> Monitor:
    """Train and return the monitor.

    Args:
        folder: For the files.
        lines: Examples; None takes 160 good ones.
        held_out: Likewise; () takes 24 good ones, None leaves the held-out loss out.
        base: Model; None takes the tiny one.
        method: "lora" or "full".
        lora: The adapter's shape, besides rank 8.
        facts: For the monitor; None says that there is a held-out set, or not.
        observers: Besides the monitor, before it.
        **training: Changes of `DEFAULTS`.
    """
    if held_out == ():
        held_out = make_lines(24, seed=99, prefix="h")
    monitor = Monitor(SilentReporter(), facts=facts or RunFacts(
        is_adapter=method != "full", has_held_out=held_out is not None
    ))  # fmt: skip
    run_training(
        base_model=base or pretrained_llama(),
        training_data=write_lines(folder / "train.jsonl", make_lines(160) if lines is None else lines),
        holdout=None if held_out is None else write_lines(folder / "held_out.jsonl", held_out),
        config=TrainingConfig.from_json(
            {"method": method, "lora": {"r": 8, **(lora or {})}, "training": {**DEFAULTS, **training}}
        ),
        output=folder / "output",
        report=SilentReporter(),
        observers=[*observers, monitor],
    )
    return monitor
