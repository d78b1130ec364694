"""Full training shared out over two processes gives what one process gives."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.fixtures.models import build_random_llama
from tests.training.engine.reporters import RecordingReporter
from tests.training.engine.small_runs import StepList, make_config, write_data
from training.engine.parallel.launcher import run_in_processes
from training.engine.parallel.task import TrainingTask

pytestmark = pytest.mark.integration


def test_two_processes_with_shares_are_one_training(tmp_path: Path) -> None:
    """Tolerances as for adapters: sums of float32 in another order."""
    base = build_random_llama(tmp_path / "base", initializer_range=0.3, num_layers=3, dtype=torch.float32)
    data = write_data(tmp_path / "train.jsonl", 9)
    config = make_config(
        method="full", max_steps=4, learning_rate=1e-4, per_device_batch_size=2,
        gradient_accumulation_steps=3, gradient_checkpointing=True, save_every_steps=2,
        early_stopping_patience=3, eval_every_steps=1,
    )  # fmt: skip
    watched: dict[str, StepList] = {}
    results = {}
    for name, num_processes in (("one", 1), ("two", 2), ("resumed", 2)):
        watched[name] = StepList()
        task = TrainingTask(
            base_model=base, training_data=data, holdout=data, config=config, output=tmp_path / name,
            checkpoints=None if name == "one" else tmp_path / "checkpoints",
        )  # fmt: skip
        results[name] = run_in_processes(
            task, num_processes=num_processes, report=RecordingReporter(), scratch=tmp_path,
            observers=[watched[name]], threads_per_process=1,
        )  # fmt: skip
    for left, right in zip(watched["one"].steps, watched["two"].steps, strict=True):
        assert left.loss == pytest.approx(right.loss, rel=1e-5)
        assert left.gradient_norm == pytest.approx(right.gradient_norm, rel=1e-3)
    held_out = [[record.loss for record in watched[name].held_out] for name in ("one", "two")]
    assert held_out[0] == pytest.approx(held_out[1], rel=1e-5)
    assert results["two"].num_trainable_parameters == results["one"].num_trainable_parameters
    assert results["resumed"].resumed_from_step == 2
    assert results["resumed"].final_loss == results["two"].final_loss
    one, two, resumed = (load_file(tmp_path / name / "model.safetensors") for name in watched)
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert torch.allclose(tensor, two[name], rtol=0, atol=2e-5), name
        assert torch.equal(two[name], resumed[name]), name
