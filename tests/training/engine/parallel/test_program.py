"""The program alone and under torchrun."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.models import random_llama
from tests.training.engine.small_runs import make_config, train
from training.engine.program import main

ROOT = Path(__file__).parents[4]


def start(tmp_path: Path, launcher: list[str], name: str) -> subprocess.CompletedProcess[str]:
    command = [
        *launcher, "training.engine.program", "--base", str(random_llama(initializer_range=0.3)),
        "--data", str(tmp_path / "train.jsonl"), "--config", str(tmp_path / "config.json"),
        "--output", str(tmp_path / name), "--base-name", "tiny",
    ]  # fmt: skip
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.integration
def test_two_processes_under_torchrun(tmp_path: Path) -> None:
    config = make_config(max_steps=3, learning_rate=1e-3)
    (tmp_path / "config.json").write_text(json.dumps(config.to_json()))
    alone = train(tmp_path, config=config, has_holdout=False)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    done = start(tmp_path, torchrun, "two")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["num_processes"] == 2
    assert result["final_loss"] == pytest.approx(alone.final_loss, rel=1e-5)
    assert "step 3/3" in done.stderr
    assert (tmp_path / "two" / "adapter_model.safetensors").is_file()


def test_a_refusal_ends_with_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"training": {"max_length_tokens": 8}}))
    (tmp_path / "train.jsonl").write_text("no json\n")
    with pytest.raises(SystemExit) as ended:
        main([
            "--base", str(random_llama(initializer_range=0.3)), "--data", str(tmp_path / "train.jsonl"),
            "--config", str(tmp_path / "config.json"), "--output", str(tmp_path / "none"),
        ])  # fmt: skip
    assert ended.value.code == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "line 1" in said.err
