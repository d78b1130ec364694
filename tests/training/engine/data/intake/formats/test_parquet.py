import datetime
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.training.engine.data.intake.builders import codes, values
from training.engine.data.intake.formats.parquet import find_parquet_layout, read_parquet
from training.engine.data.intake.rows import FileRefused, RawRow, UnreadableRow
from training.engine.data.intake.settings import IntakeLimits


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path / "a.parquet", **options)
    return path / "a.parquet"


def read(path: Path, *, columns: set[str] | None = None, **limits: int) -> list[RawRow | UnreadableRow]:
    return list(read_parquet(path, find_parquet_layout(path), IntakeLimits(**limits), columns=columns))


def test_rows_over_several_row_groups(tmp_path: Path) -> None:
    path = write(
        tmp_path, {"text": [f"文{n}" for n in range(1000)], "n": list(range(1000))}, row_group_size=300
    )
    rows = read(path)
    assert [row.number for row in rows] == list(range(1, 1001))
    assert list(values(rows)) == [{"text": f"文{n}", "n": n} for n in range(1000)]
    assert find_parquet_layout(path).num_rows == 1000
    assert next(values(read(path, columns={"n"}))) == {"n": 0}


def test_values_become_plain_json(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {
            "turns": [[{"from": "human", "value": "你好"}]],
            "map": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string())),
            "day": [datetime.date(2024, 2, 29)],
            "at": [datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.UTC)],
            "price": [Decimal("1.50")],
            "missing": [float("nan")],
            "null": pa.array([None], pa.null()),
            "raw": [b"bytes"],
            "flag": [True],
            "label": pa.array(["a"]).dictionary_encode(),
        },
    )
    assert next(values(read(path))) == {
        "turns": [{"from": "human", "value": "你好"}],
        "map": [["k", "v"]],
        "day": "2024-02-29",
        "at": "2024-02-29T01:02:03+00:00",
        "price": "1.50",
        "missing": None,
        "null": None,
        "raw": "bytes",
        "flag": True,
        "label": "a",
    }


def test_bad_values_are_bad_rows(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    texts = pa.concat_arrays([pa.array(["fine", "x\x00", "fine"]), broken, pa.array(["y" * 5000, "fine"])])
    numbers = [1.0, 1.0, float("inf"), 1.0, 1.0, 1.0]
    path = write(tmp_path, {"text": texts, "n": numbers, "raw": [b"a", b"a", b"a", b"a", b"a", b"\xff"]})
    assert codes(read(path, max_line_bytes=4096)) == {
        2: "nul-character",
        3: "number-not-finite",
        4: "undecodable",
        5: "row-too-long",
        6: "not-json-safe",
    }
    assert codes(read(path, columns={"n"})) == {3: "number-not-finite"}


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_long_text_in_every_row_is_not_multiplied(tmp_path: Path, is_nested: bool) -> None:
    # 2 GB of texts in a file of some kilobytes.
    text = "x" * 1_000_000
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), [text])
    path = tmp_path / "a.parquet"
    table = pa.table({"text": column, "n": list(range(2000))})
    if is_nested:
        lists = pa.ListArray.from_arrays(pa.array(range(2001), pa.int32()), column)
        table = pa.table({"text": lists, "n": list(range(2000))})
    pq.write_table(table, path)
    assert path.stat().st_size < 1_500_000
    before = pa.total_allocated_bytes()
    rows = read_parquet(path, find_parquet_layout(path), IntakeLimits(max_line_bytes=4096))
    peak, num_rows = 0, 0
    for row in rows:
        assert isinstance(row, UnreadableRow)
        peak, num_rows = max(peak, pa.total_allocated_bytes() - before), num_rows + 1
    assert num_rows == 2000
    # Builders of 16 MB batches grow by doubling.
    assert peak < 100_000_000


def test_names_of_classes(tmp_path: Path) -> None:
    features = {
        "label": {"names": ["neg", "积极"], "_type": "ClassLabel"},
        "other": {"dtype": "int64", "_type": "Value"},
    }
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    schema = pa.schema([("label", pa.int64()), ("other", pa.int64())], metadata=metadata)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"label": [1, -1, None], "other": [1, 1, 1]}, schema=schema), path)
    rows = read(path)
    assert list(values(rows)) == [{"label": "积极", "other": 1}, {"label": None, "other": 1}]
    assert codes(rows) == {2: "class-unknown"}


def test_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(FileRefused) as caught:
        find_parquet_layout(path)
    assert caught.value.fault.code == "parquet-broken"
    path = write(
        tmp_path, {"text": [f"{n}" * 50 for n in range(5000)]}, row_group_size=1000, compression="none"
    )
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    with pytest.raises(FileRefused, match="breaks off after row") as caught:
        read(path)
    assert caught.value.fault.code == "parquet-broken"


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, {"a": ["b"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FileRefused) as caught:
        find_parquet_layout(path)
    assert caught.value.fault.code == "pyarrow-missing"
    assert "assay-gate[data]" in caught.value.fault.remedy
