import json
from pathlib import Path
from typing import Any

import pytest

from tests.training.engine.data.intake.builders import TURN, turn, write_lines
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.understanding import cut, understand
from training.engine.data.intake.understood import Understanding
from training.engine.errors import DataInvalid


def look(path: Path, *, num_rows: int = 200, **raw: Any) -> Understanding:
    understanding = understand(path, IntakeSettings.from_json(raw), num_rows=num_rows)
    json.dumps(understanding.to_json(), allow_nan=False)
    return understanding


def finding_codes(understanding: Understanding) -> list[str]:
    return [finding["code"] for finding in understanding.to_json()["findings"]]


def test_a_sure_file(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *[turn(str(number), channel="app") for number in range(7)], "{")
    understanding = look(path)
    assert understanding.is_ready
    shown = understanding.to_json()
    assert shown["format"]["name"] == "jsonl"
    assert shown["encoding"] == {"name": "utf-8", "confidence": "sure", "reason": "the whole file is ASCII"}
    assert (shown["shape"]["name"], shown["shape"]["confidence"]) == ("messages", "sure")
    assert [(column["name"], column["meaning"]) for column in shown["columns"]] == [
        ("messages", "messages"),
        ("channel", "kept"),
    ]
    assert len(shown["examples"]) == 5
    first = shown["examples"][0]
    assert first["raw"] == turn("0", channel="app")
    assert first["example"]["id"] == "a-0000001"
    assert first["outcome"] == "example"
    assert shown["counts"]["num_examples"] == 7
    assert shown["counts"]["reasons"] == {"not-json": 1}
    assert finding_codes(understanding) == ["references-unverified", "bad-rows"]


def test_a_file_that_needs_columns_shows_what_the_suggestion_gives(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"id": "1", "text": "你好", "label": "greet", "source": "s"})
    understanding = look(path)
    assert not understanding.is_ready
    shown = understanding.to_json()
    assert shown["shape"]["name"] is None
    assert shown["shape"]["suggestion"] == {"input": "text", "answer": "label"}
    assert {column["name"]: column["meaning"] for column in shown["columns"]} == {
        "id": "id",
        "text": "input (suggested)",
        "label": "answer (suggested)",
        "source": "source",
    }
    assert shown["examples"][0]["outcome"] == "suggested"
    assert shown["examples"][0]["example"]["messages"][1] == {"role": "assistant", "content": "greet"}
    assert "shape-unsure" in finding_codes(understanding)
    assert look(path, columns=shown["shape"]["suggestion"]).is_ready


def test_columns_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("question,answer,system,city,uid,id,adopted,note,origin_note\nq,a,,x,1,2,yes,n,o\n")
    understanding = look(
        path,
        columns={"id": "uid"},
        tags={"place": "city"},
        keep=["note"],
        adoption={"column": "adopted", "values": ["yes"]},
        reference_source="person",
    )
    shown = understanding.to_json()
    assert {column["name"]: column["meaning"] for column in shown["columns"]} == {
        "question": "input",
        "answer": "answer",
        "system": "system",
        "city": "tag place",
        "uid": "id",
        "id": "left out: id is read from uid",
        "adopted": "adoption",
        "note": "kept",
        "origin_note": "left out",
    }
    assert shown["columns_left_out"] == ["id", "origin_note"]
    assert finding_codes(understanding) == ["column-empty", "columns-left-out"]
    assert "'system' (system) is empty" in shown["findings"][0]["message"]
    assert understanding.is_ready


def test_rows_that_become_no_examples_say_why(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl",
        turn(id="1", done="yes"),
        turn(id="1", done="yes"),
        turn(done="no"),
        {"messages": None, "done": "yes"},
        '{"messages"',
        *[turn(done="yes")] * 3,
    )
    understanding = look(path, adoption={"column": "done", "values": ["yes"]})
    rows = understanding.files[0].rows
    assert [row.outcome for row in rows] == [
        "example",
        "duplicate-id",
        "not-adopted",
        "messages-not-a-list",
        "not-json",
    ]
    assert [bool(row.example) for row in rows] == [True, False, False, False, False]
    assert [
        finding.severity.value for finding in understanding.files[0].findings if finding.code == "bad-rows"
    ] == ["warning"]


def test_two_shapes_are_a_finding(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {**TURN, "question": "q", "answer": "a"})
    understanding = look(path)
    assert "several shapes are possible" in str(understanding.to_json()["findings"][0]["message"]).lower()
    assert [item["shape"] for item in understanding.to_json()["shape"]["candidates"][:2]] == [
        "messages",
        "prompt_completion",
    ]


def test_files_that_cannot_be_read_are_findings(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", TURN)
    (tmp_path / "b.parquet").write_bytes(b"no")
    write_lines(tmp_path / "c.jsonl", {"question": "q", "answer": "a"})
    write_lines(tmp_path / "d.jsonl")
    understanding = look(tmp_path)
    assert not understanding.is_ready
    assert [file.findings[0].code for file in understanding.files] == [
        "references-unverified",
        "parquet-broken",
        "references-unverified",
        "file-empty",
    ]
    assert "files-differ" in finding_codes(understanding)
    assert understanding.num_files == 4
    with pytest.raises(DataInvalid):
        look(tmp_path / "gone")


def test_only_the_first_rows_are_looked_at(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *[TURN] * 30)
    counts = look(path, num_rows=10).files[0].counts
    assert counts is not None
    assert counts.num_rows == 10


def test_what_is_shown_is_cut() -> None:
    assert cut("x" * 1000) == "x" * 399 + "…"
    assert cut([[[[["deep"]]]]]) == [[[["[…]"]]]]
    assert cut({str(number): {"a": {"b": {"c": {"d": 1}}}} for number in range(50)})["0"] == {
        "a": {"b": {"c": "{…}"}}
    }
    assert len(cut(list(range(1000)))) == 20
