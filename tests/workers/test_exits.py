"""What the end of a child means."""

from pathlib import Path

import pytest

from workers.exits import classify_exit
from workers.job.result import JobFailure, JobResult, write_result


def classify(folder: Path, returncode: int, num_oom_kills_now: int = 3) -> JobResult:
    return classify_exit(
        returncode=returncode, folder=folder, num_oom_kills_before=3, num_oom_kills_now=num_oom_kills_now
    )


@pytest.mark.parametrize(
    ("returncode", "num_oom_kills_now", "failure_class", "code"),
    [
        (-9, 3, "infrastructure", "child-killed"),
        (-9, 4, "infrastructure", "out-of-memory"),
        (-11, 3, "infrastructure", "child-crashed"),
        (-6, 3, "infrastructure", "child-crashed"),
        (-250, 3, "infrastructure", "child-crashed"),
        (0, 3, "internal", "result-missing"),
        (1, 3, "internal", "result-missing"),
    ],
)
def test_ends_without_a_result(
    tmp_path: Path, returncode: int, num_oom_kills_now: int, failure_class: str, code: str
) -> None:
    failure = classify(tmp_path, returncode, num_oom_kills_now).failure
    assert failure is not None
    assert (failure.failure_class, failure.code) == (failure_class, code)


def test_a_written_result_counts_whatever_the_exit(tmp_path: Path) -> None:
    result = JobResult(values={"ok": True})
    write_result(tmp_path, result)
    assert classify(tmp_path, -11) == result
    failed = JobResult(failure=JobFailure(failure_class="user", code="bad", message="m"))
    write_result(tmp_path, failed)
    assert classify(tmp_path, 1) == failed


def test_a_damaged_result_is_our_fault(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{")
    failure = classify(tmp_path, 0).failure
    assert failure is not None
    assert (failure.failure_class, failure.code) == ("internal", "result-unreadable")
