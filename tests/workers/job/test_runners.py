"""train, merge and evaluate as job processes on a tiny random Llama; each repeated with the same result."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.digests import digest_json
from tests.fixtures.evaluation import answer, dataset_line, suite_definition
from tests.fixtures.models import random_llama
from training.engine.config import TrainingConfig
from training.engine.device import choose_precision
from training.engine.fingerprint import list_libraries
from training.engine.lora_model import load_tokenizer
from training.engine.preflight.overfit import identify_base, identify_overfit
from workers.job.result import JobResult, read_result
from workers.job.spec import JobSpec, write_spec

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[3]
BACKEND = {"name": "transformers", "dtype": "float32", "max_model_len": 256, "max_num_seqs": 8}
TRAINING = {
    "lora": {"r": 4, "lora_alpha": 8},
    "training": {"max_steps": 2, "gradient_accumulation_steps": 2, "learning_rate": 0.01, "dtype": "float32"},
}


def do(
    folder: Path,
    kind: str,
    inputs: Mapping[str, Path],
    config: Mapping[str, Any],
    hints: Mapping[str, Any] | None = None,
) -> JobResult:
    """Runs a job in a process of its own, and again; the second run must agree with the first."""
    (folder / "inputs").mkdir(parents=True)
    for name, source in inputs.items():
        (folder / "inputs" / name).symlink_to(source)
    spec = JobSpec(
        job_id="by-hand",
        kind=kind,
        code_version=f"{kind}@1",
        inputs={name: f"inputs/{name}" for name in inputs},
        config=config,
        num_threads=1,
        hints=hints or {},
    )
    write_spec(folder, spec)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    command = [sys.executable, "-m", "workers.job", str(folder)]
    for _ in range(2):
        done = subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "agrees with" in done.stdout
    result = read_result(folder)
    assert result is not None
    return result


def fingerprint_of_overfit(raw: Mapping[str, Any]) -> str:
    """A random base cannot learn anything by heart; here it counts as having done so before."""
    config = TrainingConfig.from_json(raw)
    return identify_overfit(
        base_identity=identify_base(random_llama()),
        chat_template=getattr(load_tokenizer(random_llama()), "chat_template"),  # noqa: B009
        libraries=list_libraries(config.method),
        config=config,
        precision=choose_precision(config.training.dtype),
    )


def write_lines(folder: Path, name: str, role: str, num_lines: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [dataset_line(role, index) for index in range(num_lines)]
    for index, line in enumerate(lines):
        if len(line["messages"]) > 1:
            # Answers that are all one would be refused before a training.
            line["messages"][1]["content"] = answer(("high", "low")[index % 2])
    (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_lines(folder / "training_data", "tickets-train@1.jsonl", "holdout", 6)
    definition = suite_definition(sampling={"max_tokens": 6, "regression_max_tokens": 4, "temperature": 0})
    for role in ("holdout", "ood", "regression", "canary"):
        write_lines(folder / "suite", f"{role}.jsonl", role, 4)
    (folder / "suite" / "suite.json").write_text(json.dumps(definition), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    folder = tmp_path_factory.mktemp("train") / "job"
    inputs = {"base_model": random_llama(), "training_data": data / "training_data"}
    result = do(folder, "train", inputs, TRAINING, {"known_overfits": [fingerprint_of_overfit(TRAINING)]})
    assert result.values["num_steps"] == 2
    assert set(result.values["timing"]) >= {"duration_seconds", "tokens_per_second", "num_processes"}
    recorded = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    (preflight,) = [event["values"] for event in recorded if event["type"] == "record"]
    assert preflight["passed"]
    assert preflight["overfit"]["status"] == "known"
    assert result.values["method"] == "lora"
    fingerprint = result.values["fingerprint"]
    assert fingerprint["code_version"] == "train@1"
    assert list(fingerprint["training_data"]) == ["tickets-train@1.jsonl"]
    assert fingerprint["digest"] == digest_json({k: v for k, v in fingerprint.items() if k != "digest"})
    return folder / result.outputs["adapter"]


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory, adapter: Path) -> Path:
    folder = tmp_path_factory.mktemp("merge") / "job"
    result = do(folder, "merge", {"base_model": random_llama(), "adapter": adapter}, {})
    # Two layers with seven projections each; every one has an A and a B.
    assert result.values["num_touched_tensors"] == 14
    assert result.values["num_adapter_tensors"] == 28
    assert "model.safetensors" in result.output_digests["merged_model"]
    return folder / result.outputs["merged_model"]


def test_train_and_merge_give_the_same_bytes_again(adapter: Path, merged: Path) -> None:
    assert {path.name for path in adapter.iterdir()} >= {"adapter_config.json", "adapter_model.safetensors"}
    assert not list(merged.glob("adapter*"))


def test_an_evaluation_is_reported_with_its_leaks(tmp_path: Path, data: Path) -> None:
    inputs = {
        "base_model": random_llama(),
        "suite": data / "suite",
        "training_data": data / "training_data",
    }
    config = {"subject": "baseline", "form": "merged", "backend": BACKEND}
    result = do(tmp_path / "job", "evaluate", inputs, config)
    assert sorted(result.output_digests["report"]) == ["examples.jsonl", "metrics.json"]
    metrics = json.loads((tmp_path / "job" / "outputs" / "report" / "metrics.json").read_text())
    # The training lines are the first lines of the holdout set.
    leaked = {(pair["role"], pair["train_id"], pair["kind"]) for pair in metrics["leakage"]["pairs"]}
    assert {("holdout", f"holdout-{number}", "exact") for number in range(4)} <= leaked
    events = (tmp_path / "job" / "events.jsonl").read_text().splitlines()
    fractions = [json.loads(line)["fraction"] for line in events if '"progress"' in line]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
