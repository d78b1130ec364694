import json
from pathlib import Path
from typing import Any

import pytest
import typer

from evaluation.engine.errors import Fault, SuiteError
from training.engine.data.program.display import Display, ProgressDisplay
from training.engine.data.program.files import output_folder
from training.engine.errors import DataInvalid
from workers.job.model_programs import (
    EngineProgress,
    answers_model_errors,
    merge_section,
    warn_of_unasked,
)


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with output_folder(target) as partial:
        (partial / "a.txt").write_text("a")
        assert not target.exists()
    assert [path.name for path in target.parent.iterdir()] == ["out"]
    assert (target / "a.txt").read_text() == "a"


def test_an_empty_folder_may_be_there_and_a_file_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with output_folder(tmp_path / "empty") as partial:
        (partial / "a.txt").touch()
    assert (tmp_path / "empty" / "a.txt").is_file()
    with pytest.raises(DataInvalid), output_folder(tmp_path / "empty" / "a.txt"):
        raise AssertionError


def test_a_fault_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), output_folder(tmp_path / "out") as partial:
        (partial / "a.txt").touch()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (KeyboardInterrupt(), 130, "nothing was written"),
        (SuiteError("s", "bad", faults=[Fault("x", "line is bad", "set 3")]), 3, "set 3: line is bad [x]"),
        (FileNotFoundError(2, "gone", "a.txt"), 3, "a.txt: gone"),
    ],
)
def test_ends_have_their_codes(
    error: BaseException, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @answers_model_errors
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as end:
        command()
    assert end.value.exit_code == code
    assert told in capsys.readouterr().err


def test_sections_are_merged_and_faulty_ones_left() -> None:
    assert merge_section({"a": {"x": 1, "y": 1}}, "a", {"y": 2}) == {"a": {"x": 1, "y": 2}}
    assert merge_section({}, "a", {"y": 2}) == {"a": {"y": 2}}
    assert merge_section({"a": [1]}, "a", {"y": 2}) == {"a": [1]}


def test_the_bar_shows_the_whole_and_the_words_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    display = ProgressDisplay(Display())
    told: list[tuple[float, str]] = []
    monkeypatch.setattr(display, "progress", lambda fraction, message: told.append((fraction, message)))
    progress = EngineProgress(display)
    progress.progress(0.25, "round")
    progress.of_engine("base")(0.5, "generating")
    assert told == [(0.25, "round"), (0.25, "base: generating (50%)")]


def test_what_was_not_asked_is_said_with_its_remedy() -> None:
    lines: list[str] = []

    class Recorder:
        def progress(self, fraction: float, message: str) -> None: ...
        def metric(self, step: int, values: Any) -> None: ...
        def log(self, level: str, message: str) -> None:
            lines.append(f"{level}: {message}")

    facts = {
        "identity": {"model": "base"},
        "num_prompts": 9,
        "not_asked": {"prompt-too-long": 2, "template-refused": 1},
        "template_refusal": "no system",
    }
    warn_of_unasked([json.loads(json.dumps(facts))], Recorder(), remedy="shorten")
    assert lines == [
        "warning: base: 2 of 9 prompts were too long; shorten",
        "warning: base: 1 of 9 prompts were refused: no system",
    ]
