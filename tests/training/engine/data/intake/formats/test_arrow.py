from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.training.engine.data.intake.builders import codes, values
from training.engine.data.intake.formats.arrow import find_arrow_layout, read_arrow
from training.engine.data.intake.rows import FileRefused, RawRow, UnreadableRow
from training.engine.data.intake.settings import IntakeLimits


def write(path: Path, *tables: Any, is_file: bool = False) -> Path:
    path = path / "a.arrow"
    make = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with path.open("wb") as sink, make(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return path


def read(path: Path, columns: set[str] | None = None) -> list[RawRow | UnreadableRow]:
    return list(read_arrow(path, find_arrow_layout(path), IntakeLimits(), columns=columns))


@pytest.mark.parametrize("is_file", [False, True])
def test_streams_and_files(tmp_path: Path, is_file: bool) -> None:
    tables = [pa.table({"text": ["你好", "b"], "n": [1, 2]}), pa.table({"text": ["c"], "n": [3]})]
    path = write(tmp_path, *tables, is_file=is_file)
    rows = read(path)
    assert [row.number for row in rows] == [1, 2, 3]
    assert list(values(rows)) == [{"text": "你好", "n": 1}, {"text": "b", "n": 2}, {"text": "c", "n": 3}]
    assert list(values(read(path, {"n"}))) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_invalid_values_cost_their_rows_only(tmp_path: Path) -> None:
    # Texts "a", two bytes that are no UTF-8, "b".
    offsets = b"".join(number.to_bytes(4, "little") for number in (0, 1, 3, 4))
    texts = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"a\xff\xfeb")])
    rows = read(write(tmp_path, pa.table({"text": texts})))
    assert codes(rows) == {2: "value-invalid"}
    assert list(values(rows)) == [{"text": "a"}, {"text": "b"}]


def test_places_outside_of_the_data_are_never_read(tmp_path: Path) -> None:
    path = write(tmp_path, pa.table({"text": ["abc", "de", "f"]}))
    places = [
        b"".join(number.to_bytes(4, "little") for number in item)
        for item in ((0, 3, 5, 6), (0, 9 << 20, 5, 6))
    ]
    content = path.read_bytes()
    assert content.count(places[0]) == 1
    path.write_bytes(content.replace(*places))
    rows = read(path)
    assert codes(rows) == {1: "value-invalid", 2: "value-invalid"}
    assert list(values(rows)) == [{"text": "f"}]


@pytest.mark.parametrize("content", [b"", b"ARROW1\0\0junk", b"junk" * 100])
def test_broken_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(content)
    with pytest.raises(FileRefused) as caught:
        find_arrow_layout(path)
    assert caught.value.fault.code == "arrow-broken"


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    tables = [pa.table({"text": ["x" * 1000] * 10})] * 3
    path = write(tmp_path, *tables)
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(FileRefused, match="breaks off after row 20"):
        read(path)
