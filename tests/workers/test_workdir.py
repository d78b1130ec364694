"""Work folders: laid out from the store, and removed when they are old."""

import dataclasses
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from registry.services.jobs import ClaimedJob
from tests.fixtures.registry import store_files
from workers.job.result import JobResult
from workers.job.spec import read_spec
from workers.outputs import OutputsMalformed, store_output
from workers.workdir import WorkFolder, prepare_work_folder, remove_kept_folder, remove_old_work_folders


def claimed(inputs: dict[str, Any], attempt: int = 1) -> ClaimedJob:
    return ClaimedJob(
        job_id=uuid.UUID(int=7),
        claim=uuid.uuid4(),
        attempt=attempt,
        worker="w",
        kind="evaluate",
        code_version="evaluate@1",
        inputs=inputs,
        config={"a": 1},
        time_limit_seconds=1,
        subject="",
    )


@pytest.mark.django_db
def test_inputs_are_links_and_inline_files(tmp_path: Path) -> None:
    data = store_files({"data.jsonl": b"line\n"}, kind="dataset")
    model = store_files({"sub/model.bin": b"weights"}, kind="base_model")
    inputs = {
        "base_model": {"artifact": model.digest},
        "suite": {
            "files": {"holdout.jsonl": {"artifact": data.digest, "path": "data.jsonl"}},
            "inline": {"suite.json": {"name": "é"}},
        },
    }
    folder = prepare_work_folder(claim=claimed(inputs), root=tmp_path / "work", num_threads=2)
    assert folder.path == tmp_path / "work" / str(uuid.UUID(int=7)) / "attempt-1"
    laid_out = folder.path / "inputs"
    assert (laid_out / "suite" / "holdout.jsonl").read_bytes() == b"line\n"
    assert json.loads((laid_out / "suite" / "suite.json").read_text()) == {"name": "é"}
    weights = laid_out / "base_model" / "sub" / "model.bin"
    assert weights.read_bytes() == b"weights"
    assert weights.stat().st_nlink > 1 or weights.is_symlink(), "a job never copies a model"
    assert weights.stat().st_mode & 0o222 == 0
    spec = read_spec(folder.path)
    assert (spec.kind, spec.num_threads, spec.config) == ("evaluate", 2, {"a": 1})


@pytest.mark.django_db
def test_outputs_of_a_killed_attempt_are_removed_by_the_next(tmp_path: Path) -> None:
    first = prepare_work_folder(claim=claimed({}), root=tmp_path, num_threads=1)
    (first.outputs / "merged_model").mkdir(parents=True)
    prepare_work_folder(claim=claimed({}, attempt=2), root=tmp_path, num_threads=1)
    assert not first.outputs.exists()
    assert (first.path / "spec.json").exists()


@pytest.mark.django_db
def test_what_is_kept_outlives_attempts_until_the_end(tmp_path: Path) -> None:
    first = prepare_work_folder(claim=claimed({}), root=tmp_path, num_threads=1)
    (first.kept / "checkpoints").mkdir()
    second = prepare_work_folder(claim=claimed({}, attempt=2), root=tmp_path, num_threads=1)
    assert second.kept == first.kept == tmp_path / str(uuid.UUID(int=7)) / "kept"
    assert (second.kept / "checkpoints").is_dir()
    remove_kept_folder(root=tmp_path, job_id=uuid.UUID(int=7))
    assert not second.kept.exists()
    assert read_spec(second.path).kind == "evaluate"
    remove_kept_folder(root=tmp_path, job_id=uuid.UUID(int=8))


@pytest.mark.django_db
def test_hints_reach_the_child(tmp_path: Path) -> None:
    claim = dataclasses.replace(claimed({}), hints={"known_overfits": ["a"]})
    folder = prepare_work_folder(claim=claim, root=tmp_path, num_threads=1)
    assert read_spec(folder.path).hints == {"known_overfits": ["a"]}


@pytest.mark.django_db
def test_an_output_becomes_an_artifact(tmp_path: Path) -> None:
    folder = WorkFolder(path=tmp_path / "job")
    (folder.outputs / "report").mkdir(parents=True)
    (folder.outputs / "report" / "metrics.json").write_text("{}")
    digest = store_output(result=JobResult(outputs={"report": "outputs/report"}), folder=folder)
    assert digest == store_files({"metrics.json": b"{}"}, kind="report").digest
    assert store_output(result=JobResult(), folder=folder) is None


@pytest.mark.parametrize(
    "outputs",
    [
        {"report": "../elsewhere"},
        {"report": "/etc"},
        {"other": "outputs/other"},
        {"report": "a", "adapter": "b"},
    ],
)
def test_outputs_outside_their_folder_are_refused(tmp_path: Path, outputs: dict[str, str]) -> None:
    with pytest.raises(OutputsMalformed):
        store_output(result=JobResult(outputs=outputs), folder=WorkFolder(path=tmp_path))


def test_old_folders_go_and_those_in_use_stay(tmp_path: Path) -> None:
    long_ago = time.time() - 1000
    for name in ("old", "running", "young", "saving"):
        (tmp_path / name / "attempt-1").mkdir(parents=True)
        (tmp_path / name / "attempt-1" / "child.log").touch()
    (tmp_path / "saving" / "kept").mkdir()
    for name in ("old", "running", "saving"):
        for path in (*(tmp_path / name).rglob("*"), tmp_path / name):
            os.utime(path, (long_ago, long_ago))
    # A checkpoint that was written lately shows that the job may still go on.
    (tmp_path / "saving" / "kept" / "checkpoints").mkdir()
    num = remove_old_work_folders(root=tmp_path, ttl_seconds=500, keep=frozenset({"running"}))
    assert num == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["running", "saving", "young"]
    assert remove_old_work_folders(root=tmp_path / "absent", ttl_seconds=1, keep=frozenset()) == 0
