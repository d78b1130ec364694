"""Trainings of a tiny model on a few examples, for tests."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from tests.fixtures.models import random_llama
from tests.training.engine.reporters import RecordingReporter
from tests.training.engine.tiny import ANSWERS
from training.engine.config import TrainingConfig
from training.engine.process_group import ProcessGroup
from training.engine.step_record import HeldOutRecord, StepObserver, StepRecord
from training.engine.trainer import run_training
from training.engine.training_result import TrainingResult

DEFAULTS: dict[str, Any] = {
    "learning_rate": 1e-2, "max_steps": 12, "per_device_batch_size": 4, "gradient_accumulation_steps": 2,
    "gradient_checkpointing": False, "log_every_steps": 4, "dtype": "float32",
}  # fmt: skip
WEIGHTS = "adapter_model.safetensors"


class Interrupted(Exception):
    """Stands for whatever ends a process."""


class StepList:
    """Keeps every record, and interrupts the training after a step."""

    def __init__(self, *, interrupt_after: int | None = None) -> None:
        self.steps: list[StepRecord] = []
        self.held_out: list[HeldOutRecord] = []
        self._interrupt_after = interrupt_after

    def on_step(self, record: StepRecord) -> None:
        self.steps.append(record)
        if record.step == self._interrupt_after:
            raise Interrupted

    def on_held_out(self, record: HeldOutRecord) -> None:
        self.held_out.append(record)


def write_data(path: Path, count: int = 16) -> Path:
    rows = [
        {
            "id": f"e{i}",
            "messages": [
                {"role": "user", "content": f"What is number {i % 4}?" + " please" * (i % 5)},
                {"role": "assistant", "content": ANSWERS[i % 4]},
            ],
        }
        for i in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_config(
    lora: dict[str, Any] | None = None,
    method: str = "lora",
    data: dict[str, Any] | None = None,
    **training: Any,
) -> TrainingConfig:
    return TrainingConfig.from_json(
        {
            "method": method,
            "lora": {"r": 4, **(lora or {})},
            "training": {**DEFAULTS, **training},
            "data": data or {},
        }
    )


def train(
    tmp_path: Path,
    name: str = "adapter",
    *,
    base: Path | None = None,
    config: TrainingConfig | None = None,
    observers: Sequence[StepObserver] = (),
    checkpoints: Path | None = None,
    has_holdout: bool = True,
    num_examples: int = 16,
    report: RecordingReporter | None = None,
    group: ProcessGroup | None = None,
    **training: Any,
) -> TrainingResult:
    data = write_data(tmp_path / "train.jsonl", num_examples)
    return run_training(
        base_model=base or random_llama(initializer_range=0.3),
        training_data=data,
        holdout=data if has_holdout else None,
        config=config or make_config(**training),
        output=tmp_path / name,
        report=report or RecordingReporter(),
        base_model_name="tiny",
        checkpoints=checkpoints,
        observers=observers,
        group=group,
    )


def read_adapter(tmp_path: Path, name: str = "adapter") -> dict[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = load_file(tmp_path / name / WEIGHTS)
    return tensors


def are_same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
