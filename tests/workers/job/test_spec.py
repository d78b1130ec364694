"""spec.json is read like any input: every fault at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from workers.job.errors import JobFolderError
from workers.job.spec import JobSpec, JobTask, read_spec, write_spec


def document(**changes: Any) -> dict[str, Any]:
    value = {
        "schema_version": 1,
        "job_id": "1",
        "kind": "check",
        "code_version": "check@1",
        "inputs": {"adapter": "inputs/adapter"},
        "config": {},
    }
    return value | changes


def write(folder: Path, value: Any) -> Path:
    (folder / "inputs" / "adapter").mkdir(parents=True)
    (folder / "spec.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


def test_a_written_spec_is_read_back(tmp_path: Path) -> None:
    spec = JobSpec(
        job_id="7",
        kind="merge",
        code_version="merge@1",
        inputs={"adapter": "inputs/adapter"},
        config={"a": [1, "é"]},
        num_threads=2,
        hints={"known_overfits": ["x"]},
    )
    (tmp_path / "inputs" / "adapter").mkdir(parents=True)
    write_spec(tmp_path, spec)
    assert read_spec(tmp_path) == spec


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    value = document(schema_version=2, job_id=3, kind="bake", config=[], hints=[], num_threads=0)
    value["inputs"] = {"a": "/etc", "b": "../x", "c": "inputs/absent", "d": 5}
    with pytest.raises(JobFolderError) as caught:
        read_spec(write(tmp_path, value))
    places = [fault.where.removeprefix("spec.json: ") for fault in caught.value.faults]
    assert places == [
        *("schema_version", "job_id", "kind", "config", "hints", "num_threads"),
        *("inputs.a", "inputs.b", "inputs.c", "inputs.d"),
    ]
    assert caught.value.code == "spec-invalid"


@pytest.mark.parametrize("text", ["", "[1]", "{", "\udcff"])
def test_what_is_no_json_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "spec.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(JobFolderError, match=r"spec\.json") as caught:
        read_spec(tmp_path)
    assert caught.value.code == "spec-unreadable"


def test_a_missing_input_is_told_by_name(tmp_path: Path) -> None:
    task = JobTask(
        spec=read_spec(write(tmp_path, document())),
        workdir=tmp_path,
        outputs=tmp_path,
        scratch=tmp_path,
        kept=tmp_path,
    )
    assert task.input("adapter") == tmp_path / "inputs" / "adapter"
    assert task.optional_input("holdout") is None
    with pytest.raises(JobFolderError, match="base_model"):
        task.input("base_model")


def test_an_older_spec_has_no_hints(tmp_path: Path) -> None:
    assert read_spec(write(tmp_path, document())).hints == {}
