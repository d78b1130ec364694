"""prepare as a job process: raw files become sets, by hand the same bytes again, and no torch comes along."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.dataset_lines import check_dataset_lines
from tests.fixtures.preparations import RECIPE, ticket_log
from tests.fixtures.registry import jsonl
from workers.job.result import JobResult, read_result
from workers.job.spec import JobSpec, write_spec

ROOT = Path(__file__).resolve().parents[3]


def run_in_process(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    command = [sys.executable, "-m", "workers.job", str(folder)]
    return subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )


def lay_out(folder: Path, recipe: dict[str, Any], files: dict[str, bytes]) -> None:
    for path, content in files.items():
        target = folder / "inputs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    names = sorted({path.split("/")[0] for path in files})
    spec = JobSpec(
        job_id="by-hand",
        kind="prepare",
        code_version="prepare@1",
        inputs={name: f"inputs/{name}" for name in names},
        config=recipe,
        num_threads=1,
    )
    write_spec(folder, spec)


def result_of(folder: Path) -> JobResult:
    result = read_result(folder)
    assert result is not None
    return result


@pytest.mark.integration
def test_sets_and_report_and_the_same_again(tmp_path: Path) -> None:
    ood = {"id": "o-1", "messages": [{"role": "user", "content": "Where is my parcel, please?"}]}
    answered = ood | {"messages": [*ood["messages"], {"role": "assistant", "content": "On its way."}]}
    files = {
        "sources/tickets.csv": ticket_log(60),
        "evaluation_sets/tickets-ood@1.jsonl": jsonl(answered),
    }
    lay_out(tmp_path, RECIPE, files)
    first = run_in_process(tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    result = result_of(tmp_path)
    folder = tmp_path / result.outputs["prepared"]
    assert {path.name for path in (folder / "sets").iterdir()} == {"train.jsonl", "holdout.jsonl"}
    report = json.loads((folder / "report.json").read_text())
    for role, described in report["sets"].items():
        with (folder / "sets" / f"{role}.jsonl").open("rb") as file:
            summary = check_dataset_lines(file, role=role)
        assert summary.is_valid and summary.num_examples == described["num_examples"] > 0
    assert result.values["sets"] == {role: it["num_examples"] for role, it in report["sets"].items()}
    assert "tickets-ood@1" in json.dumps(report["leakage"])
    fractions = [
        json.loads(line)["fraction"]
        for line in (tmp_path / "events.jsonl").read_text().splitlines()
        if '"progress"' in line
    ]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0
    again = run_in_process(tmp_path)
    assert again.returncode == 0 and "agrees with" in again.stdout, again.stdout + again.stderr


@pytest.mark.integration
def test_faults_of_the_data_are_the_users(tmp_path: Path) -> None:
    lay_out(tmp_path, RECIPE, {"sources/tickets.csv": b"ticket,text,structured\nT-1,,\n"})
    assert run_in_process(tmp_path).returncode == 1
    failure = result_of(tmp_path).failure
    assert failure is not None
    assert (failure.failure_class, failure.code) == ("user", "nothing-left")


@pytest.mark.integration
def test_no_model_library_is_loaded(tmp_path: Path) -> None:
    program = (
        "import workers.job.runners.prepare, training.engine.data.preparation.run, sys; "
        "print(sorted({'torch', 'transformers', 'peft', 'vllm', 'django', 'celery'} & set(sys.modules)))"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
