from pathlib import Path
from typing import Any

import pytest

from tests.training.engine.data.intake.builders import TURN, write_lines
from training.engine.data.intake import planning
from training.engine.data.intake.planning import plan_files
from training.engine.data.intake.settings import IntakeSettings
from training.engine.errors import DataInvalid


def faults(path: Path, **raw: Any) -> dict[str, tuple[str, str]]:
    with pytest.raises(DataInvalid) as caught:
        plan_files(path, IntakeSettings.from_json(raw))
    assert caught.value.code == "intake-refused"
    return {fault.where: (fault.code, fault.remedy) for fault in caught.value.faults}


def test_every_file_that_is_refused_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "good.jsonl", TURN)
    write_lines(tmp_path / "shape.jsonl", {"text": "t", "label": "l"})
    (tmp_path / "broken.parquet").write_bytes(b"no")
    (tmp_path / "bytes.csv").write_bytes(b"a,b\n\xff\xff\xff,caf\xe9 \n")
    found = faults(tmp_path)
    assert {where: code for where, (code, _) in found.items()} == {
        "shape.jsonl": "shape-unsure",
        "broken.parquet": "parquet-broken",
        "bytes.csv": "encoding-unknown",
    }
    assert found["shape.jsonl"][1] == 'If that is meant, state columns: {"input": "text", "answer": "label"}.'


def test_missing_columns_name_the_near_ones(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("question,answer,channel\nq,a,c\n")
    found = faults(tmp_path / "a.csv", tags=["chanel"], keep=["nothing"])
    assert found["a.csv"] == ("column-missing", "Did you mean channel?")
    # Without its input column the shape is not sure either, but the name of the column says more.
    found = faults(tmp_path / "a.csv", columns={"input": "quetsion", "answer": "answer"})
    assert found["a.csv"] == ("column-missing", "Did you mean question?")


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    assert faults(tmp_path / "gone.csv")["gone.csv"][0] == "data-file-missing"


def test_a_file_without_any_readable_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MAX_SAMPLED_RECORDS", 3)
    write_lines(tmp_path / "a.jsonl", "{", "{", "{", TURN)
    assert faults(tmp_path / "a.jsonl")["a.jsonl"][0] == "no-readable-row"


def test_the_sample_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MAX_SAMPLED_CHARACTERS", 150)
    write_lines(tmp_path / "a.jsonl", *[{**TURN, "long": "x" * 60}] * 10)
    (plan,), _ = plan_files(tmp_path / "a.jsonl", IntakeSettings())
    assert plan.num_sampled == 2
    assert plan.columns_seen == ("messages", "long")
