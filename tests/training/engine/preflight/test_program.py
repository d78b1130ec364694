import json
from pathlib import Path

import pytest

from tests.training.engine.planted.material import make_lines, pretrained_llama, write_lines
from training.engine.preflight.program import main
from training.engine.preflight.terminal import (
    PROMPT_STYLE,
    SPECIAL_STYLE,
    TRAINED_SPECIAL_STYLE,
    TRAINED_STYLE,
    paint_row,
    split_special,
)


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "train.jsonl", make_lines(30))


def test_sound_data_are_shown_and_end_with_0(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--base", pretrained_llama(), "--data", data, "--data-only") == 0
    out = capsys.readouterr().out
    assert "Batch 3" in out and "Batch 4" not in out
    assert "<|im_end|>" in out and "✓ trained-text" in out
    assert "The preflight passed" in out


def test_a_failed_check_ends_with_1_and_names_its_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = make_lines(30)
    for line in lines:
        line["messages"][1]["content"] = "the same\x1b[31m"
    data = write_lines(tmp_path / "train.jsonl", lines)
    assert run("--base", pretrained_llama(), "--data", data, "--data-only") == 1
    out = capsys.readouterr().out
    assert "✗ answers-differ" in out and "[handbook: loss-near-zero]" in out
    assert "\x1b[31m" not in out and "\\x1b[31m" in out


def test_the_document_as_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--base", pretrained_llama(), "--data", data, "--data-only", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] and document["schema_version"] == 1


def test_wrong_use_and_unreadable_files_end_with_3(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text("no json\n")
    assert run("--data", tmp_path / "train.jsonl") == 3
    assert run("--base", pretrained_llama(), "--data", tmp_path / "train.jsonl", "--data-only") == 3


def test_prompt_answer_and_special_tokens_have_their_own_colours() -> None:
    row = {
        "example_id": "e", "num_tokens": 6, "num_trained_tokens": 2, "was_cut": False,
        "segments": [
            {"text": "<|im_start|>ask\n", "trained": False}, {"text": "answer<|im_end|>", "trained": True},
        ],
    }  # fmt: skip
    text = paint_row(row, ["<|im_start|>", "<|im_end|>"])
    styled = {text.plain[span.start : span.end]: str(span.style) for span in text.spans}
    assert styled["<|im_start|>"] == SPECIAL_STYLE
    assert styled["ask↵\n"] == PROMPT_STYLE
    assert styled["answer"] == TRAINED_STYLE
    assert styled["<|im_end|>"] == TRAINED_SPECIAL_STYLE


def test_special_tokens_are_split_off() -> None:
    assert split_special("a<x>b", ["<x>", ""]) == [("a", False), ("<x>", True), ("b", False)]
    assert split_special("a<x>b", []) == [("a<x>b", False)]
