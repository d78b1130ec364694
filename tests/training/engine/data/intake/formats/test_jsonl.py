import json
from pathlib import Path

import pytest

from tests.training.engine.data.intake.builders import codes, text_file, values, write_lines
from training.engine.data.intake.formats.jsonl import read_jsonl


def test_rows_are_counted_without_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\r\n\r\n  \n{"a": "\xe2\x80\xa8"}\n{"a": 3}')
    rows = list(read_jsonl(text_file(path)))
    assert [(row.number, row.place) for row in rows] == [(1, "line 1"), (2, "line 4"), (3, "line 5")]
    assert list(values(rows)) == [{"a": 1}, {"a": "\u2028"}, {"a": 3}]


def test_every_bad_line_has_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'{"a": 1}\n{"a": 1\n{"a": "\xff"}\n[]\n{"a": "x\x00"}\n'
        + b'{"a": "' + b"x" * 3_000_000 + b'"}\n'
        + b'{"a": ' + b"[" * 100_000 + b"\n"
        + b'{"a": 1, "a": 2}\n{"a": NaN}\n{"a": "\\ud800"}\n{"a": 2}\n'
    )  # fmt: skip
    rows = list(read_jsonl(text_file(path)))
    assert codes(rows) == {
        2: "not-json",
        3: "undecodable",
        4: "not-an-object",
        5: "nul-character",
        6: "row-too-long",
        7: "too-deep",
        8: "duplicate-key",
        9: "number-not-finite",
        10: "lone-surrogate",
    }
    assert list(values(rows)) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("name", ["utf-8", "utf-16-le", "utf-16-be", "gb18030"])
def test_encodings(tmp_path: Path, name: str) -> None:
    rows = [{"文本": "你好\u2028请问", "n": number} for number in range(3)]
    path = write_lines(tmp_path / "a.jsonl", *rows, "", json.dumps(rows[0])[:-1], encoding=name)
    read = list(read_jsonl(text_file(path, name=name)))
    assert list(values(read)) == rows
    assert codes(read) == {4: "not-json"}


def test_lone_surrogate_in_utf16_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"a": "\ud800"}\n{"a": "b"}\n'.encode("utf-16-le", "surrogatepass"))
    rows = list(read_jsonl(text_file(path, name="utf-16-le")))
    assert codes(rows) == {1: "undecodable"}
    assert list(values(rows)) == [{"a": "b"}]
