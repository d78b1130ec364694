import csv as standard_csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.intake.builders import codes, text_file, values
from training.engine.data.intake.formats.csv import CsvLayout, find_csv_layout, read_csv
from training.engine.data.intake.rows import FileRefused, RawRow, UnreadableRow
from training.engine.data.intake.settings import IntakeSettings


def layout_of(path: Path, content: str | bytes, *, expects_tabs: bool = False, **raw: Any) -> CsvLayout:
    path = path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return find_csv_layout(text_file(path), IntakeSettings.from_json(raw), expects_tabs=expects_tabs)


def read(path: Path, content: str | bytes, **limits: int) -> list[RawRow | UnreadableRow]:
    layout = layout_of(path, content)
    return list(read_csv(text_file(path / "a.csv", **limits), layout))


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a\tb\n1, 2\t3\n", "\t"),
        ("a;b\n1,5;2,5\n", ";"),
        ("a|b\n1|2\n", "|"),
        ('"a","b"\n"x;y;z","2"\n', ","),
        ("text\nhello; you, there\n", ","),
        ("问题,答案\n你好,再见\n", ","),
    ],
)
def test_found_delimiters(tmp_path: Path, content: str, delimiter: str) -> None:
    assert layout_of(tmp_path, content).delimiter == delimiter


def test_two_delimiters_that_fit_are_not_guessed(tmp_path: Path) -> None:
    content = "a,b\tc,d\n1,2\t3,4\n"
    with pytest.raises(FileRefused, match=r"comma: 3 columns.*tab: 2 columns") as caught:
        layout_of(tmp_path, content)
    assert caught.value.fault.code == "csv-delimiter-unsure"
    assert layout_of(tmp_path, content, expects_tabs=True).delimiter == "\t"
    assert layout_of(tmp_path, content, delimiter="comma").columns == ("a", "b\tc", "d")


def test_header_and_stated_names(tmp_path: Path) -> None:
    assert layout_of(tmp_path, ",text, label \n0,a,b\n").columns == ("column_1", "text", "label")
    named = layout_of(tmp_path, "1,2\n", column_names=["a", "b"])
    assert list(values(read_csv(text_file(tmp_path / "a.csv"), named))) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "csv-empty"),
        ("\n\n", "csv-empty"),
        ("a,a\n1,2\n", "csv-header-invalid"),
        ('"a,b\n1,2\n', "csv-header-invalid"),
        (b"a,\xff\n1,2\n", "csv-header-invalid"),
        (b"a,b\x00\n1,2\n", "csv-header-invalid"),
        (",".join(map(str, range(2001))) + "\n", "csv-header-invalid"),
        ("a,b\r1,2\r3,4\r5,6\r7,8\r", "line-ends-cr"),
    ],
)
def test_refused_headers(tmp_path: Path, content: str | bytes, code: str) -> None:
    with pytest.raises(FileRefused) as caught:
        layout_of(tmp_path, content)
    assert caught.value.fault.code == code


def test_quotes_line_breaks_and_blank_lines(tmp_path: Path) -> None:
    rows = read(tmp_path, 'a,b\r\n"x\r\n""y"", z",1\r\n\r\n5" disk,2\r\n')
    assert list(values(rows)) == [{"a": 'x\r\n"y", z', "b": "1"}, {"a": '5" disk', "b": "2"}]
    assert [(row.number, row.place) for row in rows] == [(1, "line 2"), (2, "line 5")]


def test_every_bad_record_has_its_reason(tmp_path: Path) -> None:
    long_cell = "x" * 2000
    content = (
        b"a,b\n1,2\n1,2,3\n1\n"
        + b'"x"y,2\n'
        + b"\x00,1\n\xff,1\n"
        + f"{long_cell},1\n{long_cell * 4},1\n".encode()
        + b"3,4\n"
    )
    rows = read(tmp_path, content, max_cell_bytes=1024, max_line_bytes=4096)
    assert codes(rows) == {
        2: "csv-cell-count",
        3: "csv-cell-count",
        4: "csv-quotes",
        5: "nul-character",
        6: "undecodable",
        7: "cell-too-long",
        8: "row-too-long",
    }
    assert list(values(rows)) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


@pytest.mark.parametrize("end", ['"z" z,1\n', "", "y,2\n" * 600])
def test_an_open_quote_costs_its_line_only(tmp_path: Path, end: str) -> None:
    rows = read(tmp_path, f'a,b\n1,2\n"open,3\n4,5\n6,7\n{end}', max_line_bytes=1024)
    assert codes(rows)[2] == "csv-quotes"
    assert list(values(rows))[:3] == [{"a": "1", "b": "2"}, {"a": "4", "b": "5"}, {"a": "6", "b": "7"}]


def test_a_line_that_is_too_long_inside_quotes(tmp_path: Path) -> None:
    rows = read(tmp_path, 'a,b\n"x\n' + "y" * 5000 + '",1\n2,3\n', max_line_bytes=1024)
    assert codes(rows) == {1: "csv-quotes", 2: "row-too-long"}
    assert list(values(rows)) == [{"a": "2", "b": "3"}]


def test_cells_beyond_the_default_of_the_library(tmp_path: Path) -> None:
    # The csv module refuses fields of more than 131,072 characters by default.
    rows = read(tmp_path, "a,b\n" + "x" * 300_000 + ",1\n")
    assert [len(row["a"]) for row in values(rows)] == [300_000]


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "gb18030"])
def test_encodings(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes('问题,答案\n"你\n好",再见\n'.encode(name))
    file = text_file(path, name=name)
    layout = find_csv_layout(file, IntakeSettings())
    assert list(values(read_csv(file, layout))) == [{"问题": "你\n好", "答案": "再见"}]


@given(st.lists(st.tuples(*[st.text('a",;\n\r\t好\u2028', max_size=6)] * 2), min_size=1, max_size=6))
def test_what_the_library_writes_comes_back(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]]
) -> None:
    buffer = io.StringIO(newline="")
    standard_csv.writer(buffer, quoting=standard_csv.QUOTE_ALL).writerows([("x", "y"), *cells])
    path = tmp_path_factory.mktemp("a") / "a.csv"
    path.write_bytes(buffer.getvalue().encode())
    layout = CsvLayout(delimiter=",", columns=("x", "y"), has_header=True, reason="")
    rows = list(read_csv(text_file(path), layout))
    assert [(row["x"], row["y"]) for row in values(rows)] == cells
