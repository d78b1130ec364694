"""Two processes on a CPU give what one gives, and fail as one."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.fixtures.models import random_llama
from tests.training.engine.reporters import RecordingReporter
from tests.training.engine.small_runs import StepList, make_config, read_adapter, write_data
from training.engine.config import TrainingConfig
from training.engine.errors import DataInvalid
from training.engine.parallel.launcher import run_in_processes
from training.engine.parallel.task import TrainingTask
from training.engine.step_record import StepRecord
from training.engine.training_result import TrainingResult

pytestmark = pytest.mark.integration

LOSS_TOLERANCE = 1e-5
"""Relative: float32 sums of gradients in another order, through a few steps."""
WEIGHT_TOLERANCE = 5e-5
"""Absolute, of weights around 0.1: Adam divides by the gradient's own size, which amplifies rounding."""


def make_task(tmp_path: Path, name: str, config: TrainingConfig, **others: Any) -> TrainingTask:
    data = write_data(tmp_path / "train.jsonl", 13)
    return TrainingTask(
        base_model=random_llama(initializer_range=0.3), training_data=data, holdout=data, config=config,
        output=tmp_path / name, base_model_name="tiny", **others,
    )  # fmt: skip


def run(
    task: TrainingTask, num_processes: int, observers: list[Any] | None = None
) -> tuple[TrainingResult, RecordingReporter]:
    report = RecordingReporter()
    result = run_in_processes(
        task, num_processes=num_processes, report=report, scratch=task.output.parent,
        observers=observers or [], threads_per_process=1,
    )  # fmt: skip
    return result, report


def are_close(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(
        torch.allclose(left[name], right[name], rtol=0, atol=WEIGHT_TOLERANCE) for name in left
    )


class KillWorker:
    """Kills a process of the training at a step."""

    def on_step(self, record: StepRecord) -> None:
        if record.step == 2:
            os.kill(find_children()[1], signal.SIGKILL)

    def on_held_out(self, record: Any) -> None:
        pass


def find_children() -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text()
        except OSError:
            continue
        if int(stat[1]) == os.getpid() and "training.engine.parallel.worker" in command:
            found.append(int(folder.name))
    return sorted(found)


def test_two_processes_are_one_training_even_after_a_break(tmp_path: Path) -> None:
    """13 rows in batches of 2, three batches a step: an odd number for two processes."""
    config = make_config(
        {"lora_dropout": 0.2}, max_steps=5, per_device_batch_size=2, gradient_accumulation_steps=3,
        learning_rate=1e-3, save_every_steps=2, eval_every_steps=2,
    )  # fmt: skip
    alone = StepList()
    one, _ = run(make_task(tmp_path, "one", config), 1, [alone])
    together = StepList()
    kept = tmp_path / "checkpoints"
    two, report = run(make_task(tmp_path, "two", config, checkpoints=kept), 2, [together])
    assert (two.num_processes, two.num_steps, two.num_input_tokens) == (2, 5, one.num_input_tokens)
    assert [record.step for record in together.steps] == [1, 2, 3, 4, 5]
    for left, right in zip(alone.steps, together.steps, strict=True):
        assert left.loss == pytest.approx(right.loss, rel=LOSS_TOLERANCE)
        assert left.gradient_norm == pytest.approx(right.gradient_norm, rel=1e-3)
        assert left.num_trained_tokens == right.num_trained_tokens
    assert two.held_out_loss == pytest.approx(one.held_out_loss, rel=LOSS_TOLERANCE)
    assert are_close(read_adapter(tmp_path, "one"), read_adapter(tmp_path, "two"))
    assert report.fractions[-1] == 1.0
    assert find_children() == []
    assert not list(tmp_path.glob("processes-*"))
    # The checkpoint of step 4, written by two processes, is gone on from by one.
    resumed, _ = run(make_task(tmp_path, "resumed", config, checkpoints=kept), 1)
    assert resumed.resumed_from_step == 4
    assert resumed.final_loss == pytest.approx(one.final_loss, rel=LOSS_TOLERANCE)
    assert are_close(read_adapter(tmp_path, "one"), read_adapter(tmp_path, "resumed"))


def test_the_real_error_of_a_process_comes_back(tmp_path: Path) -> None:
    config = make_config(max_steps=3, learning_rate=1.0, max_grad_norm=0, max_length_tokens=8)
    with pytest.raises(DataInvalid) as caught:
        run(make_task(tmp_path, "none", config), 2)
    assert caught.value.code == "no-rows-left"
    assert find_children() == []


def test_a_killed_process_ends_all(tmp_path: Path) -> None:
    config = make_config(max_steps=500, per_device_batch_size=1, gradient_accumulation_steps=1)
    with pytest.raises(MemoryError, match="process 1 of the training was ended by signal 9"):
        run(replace(make_task(tmp_path, "none", config), holdout=None), 2, [KillWorker()])
    assert find_children() == []
    assert not (tmp_path / "none").exists()
