"""Replays are compared by content, without timings."""

import json
from pathlib import Path
from typing import Any

from workers.job.comparison import digest_outputs, find_differences, without_timing
from workers.job.result import JobFailure, JobResult


def test_timings_are_left_out_at_every_depth() -> None:
    value = {"a": [{"timing": {"seconds": 1}, "b": 2}], "timing": 3, "c": {"timings": 4}}
    assert without_timing(value) == {"a": [{"b": 2}], "c": {"timings": 4}}


def _write(folder: Path, seconds: float, score: float) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "metrics.json").write_text(json.dumps({"timing": {"total_seconds": seconds}, "score": score}))
    lines = [{"output": "a\u2028b", "timing": seconds}, {"output": "c"}]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "sub" / "examples.jsonl").write_text(text, encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"\0\1")
    return folder


def test_outputs_that_differ_in_timings_alone_have_equal_digests(tmp_path: Path) -> None:
    first = digest_outputs(_write(tmp_path / "1", 1.0, 0.5))
    assert sorted(first) == ["metrics.json", "model.safetensors", "sub/examples.jsonl"]
    assert first == digest_outputs(_write(tmp_path / "2", 2.0, 0.5))
    other = digest_outputs(_write(tmp_path / "3", 1.0, 0.6))
    assert [name for name in first if first[name] != other[name]] == ["metrics.json"]


def test_a_file_that_only_looks_like_json_counts_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    # sha256 of "{": echo -n '{' | sha256sum
    expected = "021fb596db81e6d02bf3d2586ee3981fe519f275c0ac9ca76bbcf2ebb4097d96"
    assert digest_outputs(tmp_path) == {"broken.json": expected}


def _result(**values: Any) -> JobResult:
    return JobResult(values=values, outputs={"r": "outputs/r"}, output_digests={"r": {"a": "1", "b": "2"}})


def test_differences_are_named() -> None:
    assert find_differences(_result(score=1, timing=1), _result(score=1, timing=2)) == []
    now = JobResult(values={"score": 2, "more": 1}, output_digests={"r": {"a": "1", "b": "3"}})
    assert find_differences(_result(score=1), now) == [
        "values/more: only now",
        "values/score: 1 before, 2 now",
        'outputs/r/b: "2" before, "3" now',
    ]
    failed = JobResult(failure=JobFailure(failure_class="user", code="bad", message="m"))
    assert find_differences(_result(), failed) == ["status: succeeded before, failed now"]
    assert find_differences(failed, failed) == []
