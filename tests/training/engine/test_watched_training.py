"""The whole way of a training: preflight, monitor, and the explanation when it stops."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.training.engine.planted.material import copy_base, make_lines, pretrained_llama, write_lines
from tests.training.engine.reporters import RecordingReporter
from training.engine.config import TrainingConfig
from training.engine.errors import TrainingFailed
from training.engine.mini.run import run_mini
from training.engine.parallel.task import TrainingTask
from training.engine.watched_training import JOURNAL_FILE, run_watched_training

CONFIG: dict[str, Any] = {
    "lora": {"r": 16},
    "training": {
        "learning_rate": 2e-3, "max_steps": 30, "per_device_batch_size": 8, "gradient_accumulation_steps": 1,
        "gradient_checkpointing": False, "dtype": "float32", "log_every_steps": 5,
    },
}  # fmt: skip


def make_task(folder: Path, **changes: Any) -> TrainingTask:
    values: dict[str, Any] = {
        "base_model": pretrained_llama(),
        "training_data": write_lines(folder / "train.jsonl", make_lines(80)),
        "holdout": None,
        "config": TrainingConfig.from_json(CONFIG),
        "output": folder / "adapter",
        "checkpoints": folder / "checkpoints",
        "known_overfits": (),
    }
    return TrainingTask(**values | changes)


def documents(report: RecordingReporter, name: str) -> list[dict[str, Any]]:
    return [values for kind, values in report.records if kind == name]


def test_a_sound_training_passes_its_preflight_and_tells_nothing(tmp_path: Path) -> None:
    report = RecordingReporter()
    result = run_watched_training(make_task(tmp_path), report=report, scratch=tmp_path)
    (preflight,) = documents(report, "preflight")
    assert preflight["passed"]
    assert preflight["overfit"]["status"] == "passed"
    assert preflight["overfit"]["last_loss"] < 0.1
    assert not [item for item in documents(report, "finding") if item["severity"] != "info"]
    assert result.num_steps == 30
    assert (tmp_path / "checkpoints" / JOURNAL_FILE).is_file()

    known = RecordingReporter()
    fingerprint = preflight["overfit"]["fingerprint"]
    again = make_task(tmp_path, output=tmp_path / "again", checkpoints=None, known_overfits=(fingerprint,))
    run_watched_training(again, report=known, scratch=tmp_path)
    assert documents(known, "preflight")[0]["overfit"]["status"] == "known"
    # The attempt at overfitting leaves the training as it would have been without it.
    first, second = (
        load_file(tmp_path / name / "adapter_model.safetensors") for name in ("adapter", "again")
    )
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_training_that_fails_its_preflight_is_not_begun(tmp_path: Path) -> None:
    report = RecordingReporter()
    lines = [{**make_lines(1)[0], "id": f"e{number}"} for number in range(20)]
    task = make_task(tmp_path, training_data=write_lines(tmp_path / "alike.jsonl", lines))
    with pytest.raises(TrainingFailed) as caught:
        run_watched_training(task, report=report, scratch=tmp_path)
    assert caught.value.code == "preflight-failed"
    assert {fault.code for fault in caught.value.faults} == {"few-copies", "answers-differ"}
    assert not documents(report, "preflight")[0]["passed"]
    assert not report.metrics
    assert not task.output.exists()


def test_a_loss_that_is_not_finite_is_traced_to_its_cause(tmp_path: Path) -> None:
    base = copy_base(tmp_path / "base")
    tensors = load_file(base / "model.safetensors")
    tensors["model.norm.weight"][0] = torch.nan
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    report = RecordingReporter()
    task = make_task(tmp_path, base_model=base, known_overfits=None)
    with pytest.raises(TrainingFailed) as caught:
        run_watched_training(task, report=report, scratch=tmp_path)
    assert caught.value.code == "loss-not-finite"
    (found,) = documents(report, "not_finite")
    assert (found["cause"], found["first_bad_step"]) == ("base-weights", 1)
    (finding,) = documents(report, "finding")
    assert (finding["row"], finding["step"]) == ("loss-not-finite", 1)


def test_memory_that_runs_out_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("training.engine.watched_training.run_in_processes", run_out)
    report = RecordingReporter()
    with pytest.raises(RuntimeError, match="allocate"):
        run_watched_training(make_task(tmp_path), report=report, scratch=tmp_path)
    (finding,) = documents(report, "finding")
    assert finding["row"] == "out-of-memory-at-start"


def test_the_small_experiment_gives_a_verdict_with_samples(tmp_path: Path) -> None:
    report = RecordingReporter()
    config = TrainingConfig.from_json(
        {**CONFIG, "data": {"max_examples": 60}, "training": {**CONFIG["training"], "max_steps": 60}}
    )
    result = run_mini(make_task(tmp_path, config=config), report=report, scratch=tmp_path)
    (document,) = documents(report, "mini")
    assert document["passed"] is result.passed
    codes = {check.code: check.status.value for check in result.checks}
    assert codes["data-sound"] == codes["loss-falls"] == "passed"
    assert len(document["samples"]) == 5
    assert all(sample["reference"].startswith("{") for sample in document["samples"])


def test_the_small_experiment_fails_where_the_preflight_does(tmp_path: Path) -> None:
    report = RecordingReporter()
    lines = [{**make_lines(1)[0], "id": f"e{number}"} for number in range(20)]
    task = make_task(tmp_path, training_data=write_lines(tmp_path / "alike.jsonl", lines))
    assert not run_mini(task, report=report, scratch=tmp_path).passed
    assert documents(report, "mini")[0]["checks"][0]["code"] == "preflight-failed"
