import json
from pathlib import Path

import pytest

from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.errors import DataInvalid


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def row(name: str, *roles: str, **extra: object) -> dict[str, object]:
    return {"id": name, "messages": [{"role": role, "content": role} for role in roles], **extra}


def test_reads_examples(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        row("1", "system", "user", "assistant", tags={"x": "y"}, source="z"),
        "",
        row("2", "user", "assistant", role="general"),
    )
    first, second = read_examples(path)
    assert (first.input_text, first.answer, first.is_general) == ("user", "assistant", False)
    assert second.is_general


def test_line_separator_inside_a_string_is_no_line_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    text = json.dumps({"id": "1", "messages": [{"role": "user", "content": "a\u2028b"}]}, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    assert read_examples(path, needs_answer=False)[0].input_text == "a\u2028b"


def test_all_faults_with_line_numbers(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        row("1", "user", "assistant"), "{", "[]", row("1", "user", "assistant"), row("5", "user"),
        {"id": "", "messages": []}, {"id": "7", "messages": [{"role": "tool", "content": "x"}]},
    )  # fmt: skip
    with pytest.raises(DataInvalid) as caught:
        read_examples(path)
    assert [(fault.code, fault.where.split()[-1]) for fault in caught.value.faults] == [
        ("not-json", "2"), ("not-an-object", "3"), ("duplicate-id", "4"), ("answer-missing", "5"),
        ("id-missing", "6"), ("messages-invalid", "6"), ("messages-invalid", "7"),
    ]  # fmt: skip


def test_folder_of_files(tmp_path: Path) -> None:
    with pytest.raises(DataInvalid):
        list_jsonl_files(tmp_path)
    for name in ("b.jsonl", "a.jsonl", "c.txt"):
        write(tmp_path / name)
    assert [path.name for path in list_jsonl_files(tmp_path)] == ["a.jsonl", "b.jsonl"]


def test_files_below_general_hold_general_examples(tmp_path: Path) -> None:
    line = (
        '{"id": "a", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]}\n'
    )
    (tmp_path / "general").mkdir()
    for path in (tmp_path / "task.jsonl", tmp_path / "general" / "mix.jsonl"):
        path.write_text(line, encoding="utf-8")
    files = list_jsonl_files(tmp_path)
    assert [file.name for file in files] == ["task.jsonl", "mix.jsonl"]
    assert [read_examples(file)[0].is_general for file in files] == [False, True]
