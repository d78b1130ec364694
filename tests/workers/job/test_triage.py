"""triage as a job: samples of the input folder on a real engine, and the report folder."""

import json
from pathlib import Path

import pytest

from evaluation.engine.backends.base import BackendConfig
from evaluation.engine.errors import EvaluationError
from tests.evaluation.engine.triage.planted import line
from tests.fixtures.models import random_llama
from workers.job.errors import JobFolderError
from workers.job.events import EventWriter
from workers.job.runners.triage import run
from workers.job.spec import JobSpec, JobTask

CONFIG = {
    "prompts": [{"name": "plain", "system_prompt": "Answer."}],
    "max_tokens": 8,
    "backend": BackendConfig(name="transformers", max_model_len=256).to_json(),
}


def make_task(folder: Path, samples: str, config: object = None) -> JobTask:
    for name in ("inputs/samples", "outputs", "scratch", "kept"):
        (folder / name).mkdir(parents=True)
    (folder / "inputs" / "samples" / "samples.json").write_text(samples)
    (folder / "inputs" / "base_model").symlink_to(random_llama())
    spec = JobSpec(
        job_id="j",
        kind="triage",
        code_version="triage@1",
        inputs={"samples": "inputs/samples", "base_model": "inputs/base_model"},
        config=CONFIG if config is None else config,  # type: ignore[arg-type]
        num_threads=1,
    )
    return JobTask(
        spec=spec,
        workdir=folder,
        outputs=folder / "outputs",
        scratch=folder / "scratch",
        kept=folder / "kept",
    )


@pytest.mark.engine
def test_the_report_and_the_values(tmp_path: Path) -> None:
    samples = {"samples": [line(n, f"Ticket {n}", {"a": n}) for n in range(10)]}
    task = make_task(tmp_path, json.dumps(samples))
    with EventWriter(tmp_path / "events.jsonl") as report:
        result = run(task, report)
    assert result.outputs == ("report",)
    assert {path.name for path in (task.outputs / "report").iterdir()} == {"triage.json", "items.jsonl"}
    assert (result.values["best_prompt"], result.values["verdict"]["num_samples"]) == ("plain", 10)
    assert set(result.values["timing"]) == {"total_seconds"}


@pytest.mark.parametrize(
    ("samples", "config", "error"),
    [
        ("not json", None, JobFolderError),
        ('{"samples": [{"id": 1}]}', None, EvaluationError),
        (json.dumps({"samples": [line(1, "q", "a")]}), {"prompts": []}, EvaluationError),
    ],
)
def test_bad_input_is_refused_before_an_engine_starts(
    tmp_path: Path, samples: str, config: object, error: type[Exception]
) -> None:
    task = make_task(tmp_path, samples, config)
    with EventWriter(tmp_path / "events.jsonl") as report, pytest.raises(error):
        run(task, report)
    assert not list(task.scratch.iterdir())
