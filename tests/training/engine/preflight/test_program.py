"""The preflight as people run it, on the tiny model."""

import json
from pathlib import Path

import pytest

from tests.training.engine.planted.material import make_lines, pretrained_llama, write_lines
from training.engine.preflight.program import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        main(["--base", str(pretrained_llama()), *arguments])
    return ended.value.code, capsys.readouterr().out


def test_sound_data_pass_and_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_lines(tmp_path / "train.jsonl", make_lines(12))
    code, out = run(capsys, "--data", str(data), "--data-only")
    assert code == 0
    assert "Batch 1" in out
    assert "trained-tokens: each of 12 rows has trained tokens" in out
    assert "The preflight passed" in out


def test_faulty_data_end_with_1_and_name_row_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [{**make_lines(1)[0], "id": f"e{number}\x1b[31m"} for number in range(20)]
    data = write_lines(tmp_path / "train.jsonl", lines)
    code, out = run(capsys, "--data", str(data), "--data-only")
    assert code == 1
    assert "[handbook: loss-near-zero]" in out
    assert "The preflight failed" in out
    assert "\x1b" not in out
    code, out = run(capsys, "--data", str(data), "--data-only", "--json")
    assert (code, json.loads(out)["passed"]) == (1, False)


def test_wrong_usage_is_told_apart_from_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys)[0] == 3
