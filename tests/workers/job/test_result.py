"""result.json: complete or absent, and read with care."""

import json
from pathlib import Path
from typing import Any

import pytest

from workers.job.errors import JobFolderError
from workers.job.result import JobFailure, JobResult, read_result, write_result


def test_results_are_read_back(tmp_path: Path) -> None:
    assert read_result(tmp_path) is None
    succeeded = JobResult(
        outputs={"report": "outputs/report"},
        values={"score": 0.5},
        output_digests={"report": {"metrics.json": "0" * 64}},
    )
    failed = JobResult(
        failure=JobFailure(failure_class="user", code="bad", message="why", details=({"code": "a"},))
    )
    for result in (succeeded, failed):
        write_result(tmp_path, result)
        assert read_result(tmp_path) == result
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_values_that_are_no_json_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_result(tmp_path, JobResult(values={"score": float("nan")}))
    assert read_result(tmp_path) is None


@pytest.mark.parametrize(
    "value",
    [
        {"schema_version": 2, "status": "succeeded", "outputs": {}, "values": {}},
        {"schema_version": 1, "status": "maybe"},
        {"schema_version": 1, "status": "succeeded"},
        {"schema_version": 1, "status": "failed", "failure": {"failure_class": "nobody"}},
        {"schema_version": 1, "status": "failed"},
    ],
)
def test_unknown_shapes_are_refused(tmp_path: Path, value: dict[str, Any]) -> None:
    (tmp_path / "result.json").write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(JobFolderError) as caught:
        read_result(tmp_path)
    assert caught.value.code == "result-unreadable"
