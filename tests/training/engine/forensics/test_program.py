"""The program on a run that failed, in this process."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner, Result

from tests.fixtures.models import random_llama
from tests.training.engine.forensics.faulty import rare_token
from tests.training.engine.reporters import RecordingReporter
from training.engine.config import TrainingConfig
from training.engine.errors import NotFinite
from training.engine.forensics.from_files import explain_training
from training.engine.forensics.program import app
from training.engine.forensics.step_history import StepHistory
from training.engine.trainer import run_training

CONFIG = {
    "lora": {"r": 4},
    "training": {
        "max_steps": 4, "per_device_batch_size": 2, "gradient_accumulation_steps": 1, "dtype": "float32",
        "save_every_steps": 1, "seed": 3,
    },
}  # fmt: skip


def write_run(folder: Path) -> None:
    """Write base, data and configuration of a run; the rare word is NaN in the base, and e2 has it."""
    base = shutil.copytree(random_llama(tie_word_embeddings=False), folder / "base")
    tensors = load_file(base / "model.safetensors")
    tensors["model.embed_tokens.weight"][rare_token()] = float("nan")
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    rows = [
        {
            "id": f"e{i}",
            "messages": [
                {"role": "user", "content": f"Say {i}" + " zebra" * (i == 2)},
                {"role": "assistant", "content": "red"},
            ],
        }
        for i in range(6)
    ]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "config.json").write_text(json.dumps(CONFIG))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})


def test_a_failed_run_is_explained_by_its_caller_and_by_the_program(tmp_path: Path) -> None:
    write_run(tmp_path)
    history, report = StepHistory(), RecordingReporter()
    config = TrainingConfig.from_json(CONFIG)
    arguments = {
        "base_model": tmp_path / "base", "training_data": tmp_path / "train.jsonl", "holdout": None,
        "config": config, "checkpoints": tmp_path / "checkpoints", "report": report,
    }  # fmt: skip
    with pytest.raises(NotFinite) as caught:
        run_training(**arguments, output=tmp_path / "adapter", observers=(history,))  # type: ignore[arg-type]
    error = caught.value
    explained = explain_training(error, **arguments, history=history.records)  # type: ignore[arg-type]
    assert "base-weights" in explained.message
    assert "model.embed_tokens.weight" in explained.message
    ((name, record),) = report.records
    assert (name, record["first_bad_step"]) == ("not_finite", error.step)

    options = (
        "--base", tmp_path / "base", "--data", tmp_path / "train.jsonl", "--config", tmp_path / "config.json",
        "--checkpoints", tmp_path / "checkpoints", "--step", error.step,
    )  # fmt: skip
    found = run(*options, "--json")
    assert found.exit_code == 1, found.output
    document = json.loads(found.stdout)
    assert document["cause"] == "base-weights"
    assert document["checkpoint_step"] == record["checkpoint_step"] == error.step - 1
    assert [item["example_id"] for item in document["examples"] if not item["is_finite"]] == ["e2"]
    told = run(*options)
    assert told.exit_code == 1
    for part in ("base-weights", "e2", "not finite", "model.embed_tokens"):
        assert part in told.stdout


def test_faults_of_the_input_are_told(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "empty.jsonl").write_text("")
    base, data, config = tmp_path / "base", tmp_path / "empty.jsonl", tmp_path / "config.json"
    result = run("--base", base, "--data", data, "--config", config)
    assert result.exit_code == 3
    assert "no-rows-left" in result.stderr
