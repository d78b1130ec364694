import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.intake.builders import TURN, read_all, turn, write_lines
from training.engine.data.example_files import iterate_examples, write_examples
from training.engine.data.intake.reading import IntakeLog, read_raw
from training.engine.data.intake.settings import IntakeSettings
from training.engine.errors import DataInvalid

PAIRS = [{"问题": "您好\n请问", "答案": '"好"', "客户": "7"}, {"问题": "b", "答案": "c", "客户": "8"}]
MAPPED = {"columns": {"input": "问题", "answer": "答案", "group": "客户"}}


def write_pairs(folder: Path, name: str) -> Path:
    path = folder / name
    ending = name.split(".", 1)[1]
    if ending == "jsonl":
        return write_lines(path, *PAIRS)
    if ending == "jsonl.gz":
        path.write_bytes(gzip.compress(write_lines(folder / "x", *PAIRS).read_bytes()))
    elif ending == "json":
        path.write_text(json.dumps({"data": PAIRS}))
    elif ending == "csv":
        path.write_bytes('问题,答案,客户\r\n"您好\n请问","""好""",7\r\nb,c,8\r\n'.encode("gb18030"))
    elif ending == "tsv":
        path.write_bytes('\ufeff问题\t答案\t客户\n"您好\n请问"\t"""好"""\t7\nb\tc\t8\n'.encode("utf-16-le"))
    elif ending == "parquet":
        pq.write_table(pa.Table.from_pylist(PAIRS), path)
    elif ending == "arrow":
        table = pa.Table.from_pylist(PAIRS)
        with path.open("wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "json", "csv", "tsv", "parquet", "arrow"])
def test_every_format_gives_the_same_examples(tmp_path: Path, ending: str) -> None:
    name = f"工单.{ending}"
    examples, log = read_all(write_pairs(tmp_path, name), **MAPPED)
    assert [example.to_json() for example in examples] == [
        {
            "id": f"工单-000000{number}",
            "messages": [
                {"role": "user", "content": row["问题"]},
                {"role": "assistant", "content": row["答案"]},
            ],
            "group": row["客户"],
            "origin": {"kind": "file", "file": name, "row": number},
        }
        for number, row in enumerate(PAIRS, start=1)
    ]
    assert log.bad_rows == ()


def test_a_folder_of_several_formats(tmp_path: Path) -> None:
    for name in ("b.csv", "a.parquet", "c.jsonl"):
        write_pairs(tmp_path, name)
    examples, log = read_all(tmp_path, **MAPPED)
    assert [example.origin["file"] for example in examples] == ["a.parquet"] * 2 + ["b.csv"] * 2 + [
        "c.jsonl"
    ] * 2
    assert [(file.format, file.encoding, file.shape) for file in log.report().files] == [
        ("parquet", None, "columns"),
        ("csv", "gb18030", "columns"),
        ("jsonl", "utf-8", "columns"),
    ]


def test_canonical_files_come_back_byte_for_byte(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "a.jsonl", turn(id="1", tags={"a": "b"}, x=[1]), turn(role="general"), turn("好", id=7)
    )
    first = write_examples(tmp_path / "1.jsonl", read_all(tmp_path / "a.jsonl")[0])
    second = write_examples(tmp_path / "2.jsonl", read_all(tmp_path / "1.jsonl")[0])
    assert first.sha256 == second.sha256
    assert list(iterate_examples(tmp_path / "1.jsonl")) == read_all(tmp_path / "1.jsonl")[0]


def test_every_bad_row_is_reported(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl",
        turn(id="1"),
        "{",
        turn(id="1"),
        {"messages": []},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"other": 1},
        turn(id="2"),
        turn(tags=3),
    )
    examples, log = read_all(path)
    assert [example.example_id for example in examples] == ["1", "2"]
    assert {row.row: row.code for row in log.bad_rows} == {
        2: "not-json",
        3: "duplicate-id",
        4: "messages-empty",
        5: "tool-role",
        6: "column-missing",
        8: "tags-invalid",
    }
    assert log.bad_rows[1].message == "the id '1' was already used in row 1"
    assert all(row.file == "a.jsonl" and row.place and row.excerpt for row in log.bad_rows)
    assert log.report().num_rows == 8


def test_ids_are_unique_over_all_files(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", turn(id="x"), turn())
    write_lines(tmp_path / "b.jsonl", turn(id="x"), turn(id="a-0000002"), turn())
    examples, log = read_all(tmp_path)
    assert [example.example_id for example in examples] == ["x", "a-0000002", "b-0000003"]
    assert [row.message for row in log.bad_rows] == [
        "the id 'x' was already used in row 1 of a.jsonl",
        "the id 'a-0000002' was already used in row 2 of a.jsonl",
    ]


def test_only_adopted_rows_of_a_log(tmp_path: Path) -> None:
    rows = [
        "question,answer,adopted,reopened",
        "q1,a1,yes,",
        "q2,a2,no,",
        "q3,a3,YES,true",
        "q4,a4,,",
        "q5,a5",
        "q6,a6,yes,false",
    ]
    path = write_lines(tmp_path / "log.csv", *rows)
    examples, log = read_all(
        path,
        adoption={"column": "adopted", "values": ["yes"]},
        rework={"column": "reopened", "values": [True]},
        confirmed_by="support",
    )
    assert [example.input_text for example in examples] == ["q1", "q6"]
    assert examples[1].fields == {
        "confirmed_by": "support",
        "origin": {"kind": "log", "file": "log.csv", "row": 6},
    }
    report = log.report()
    assert (report.left_out, report.reasons) == ({"not-adopted": 2, "reworked": 1}, {"csv-cell-count": 1})
    assert (report.num_rows, report.num_examples, report.num_bad, report.num_left_out) == (6, 2, 1, 3)


def test_hostile_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = json.dumps(TURN).encode()
    path.write_bytes(
        b"\n".join(
            (
                good,
                b'{"messages": "' + b"x" * 3_000_000 + b'"}',
                b"[" * 100_000,
                b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
                b'{"messages": "\x00"}',
                good,
            )
        )
    )
    examples, log = read_all(path)
    assert [example.origin["row"] for example in examples] == [1, 6]
    assert log.report().reasons == {"too-deep": 2, "nul-character": 1, "row-too-long": 1}
    assert max(len(line) for line in log.iterate_bad_row_lines()) < 1000


def test_lines_of_another_encoding(tmp_path: Path) -> None:
    chinese = json.dumps(turn("请问我的订单什么时候发货"), ensure_ascii=False) + "\n"
    path = tmp_path / "a.jsonl"
    path.write_bytes(chinese.encode() * 19 + chinese.encode("gb18030"))
    examples, log = read_all(path)
    assert len(examples) == 19
    assert [(row.row, row.code) for row in log.bad_rows] == [(20, "mixed-encoding")]
    path.write_bytes(chinese.encode("gb18030") * 19 + chinese.encode())
    examples, log = read_all(path)
    assert {example.input_text for example in examples} == {"请问我的订单什么时候发货"}
    assert [(row.row, row.code) for row in log.bad_rows] == [(20, "mixed-encoding")]


def test_a_bomb_is_refused_before_any_example(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(TURN).encode() + b"\n" + b" " * 20_000_000))
    with pytest.raises(DataInvalid) as caught:
        read_raw(
            path,
            IntakeSettings.from_json({"limits": {"max_decompressed_bytes": 1_000_000}}),
            bad_rows=IntakeLog(),
        )
    assert [fault.code for fault in caught.value.faults] == ["decompressed-too-large"]


def test_a_file_that_breaks_off_further_on(tmp_path: Path) -> None:
    rows = ",".join(json.dumps(TURN) for _ in range(300))
    (tmp_path / "a.json").write_text(f"[{rows}")
    stream = read_raw(tmp_path / "a.json", IntakeSettings(), bad_rows=IntakeLog())
    with pytest.raises(DataInvalid) as caught:
        list(stream)
    fault = caught.value.faults[0]
    assert (fault.code, fault.where) == ("json-broken", "a.json")
    assert "after row 300" in fault.message


def test_too_many_rows(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *[TURN] * 4)
    assert len(read_all(path, limits={"max_rows": 4})[0]) == 4
    with pytest.raises(DataInvalid) as caught:
        read_all(path, limits={"max_rows": 3})
    assert caught.value.faults[0].code == "too-many-rows"


def test_files_without_rows(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl")
    write_lines(tmp_path / "b.jsonl", TURN)
    write_lines(tmp_path / "c.jsonl", "{", "[]")
    examples, log = read_all(tmp_path)
    assert len(examples) == 1
    assert [(notice.code, notice.where) for notice in log.report().notices] == [("file-empty", "a.jsonl")]
    assert [file.shape for file in log.report().files] == [None, "messages", None]
    assert log.report().reasons == {"not-an-object": 1, "not-json": 1}


def test_columns_of_lines_that_no_row_has_are_noticed(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", TURN)
    examples, log = read_all(path, adoption={"column": "adopted", "values": ["yes"]})
    assert examples == []
    assert [notice.code for notice in log.report().notices] == ["column-not-seen"]


def test_splits_stand_in_the_origin(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for split in ("train", "test"):
        table = pa.table({"prompt": ["q"], "completion": [split]})
        pq.write_table(table, tmp_path / "data" / f"{split}-00000-of-00001.parquet")
    (tmp_path / "dataset.py").write_text("raise SystemExit")
    examples, log = read_all(tmp_path)
    assert [(example.origin["split"], example.answer) for example in examples] == [
        ("test", "test"),
        ("train", "train"),
    ]
    assert [notice.code for notice in log.report().notices] == ["loading-script-left-out", "several-splits"]
    examples, _ = read_all(tmp_path, splits=["train"])
    assert [example.answer for example in examples] == ["train"]


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "a.jsonl", *[turn(str(number), tags={"b": "1", "a": "2"}) for number in range(50)]
    )
    first, second = (write_examples(tmp_path / name, read_all(path)[0]) for name in ("1", "2"))
    assert first.sha256 == second.sha256


JUNK = st.one_of(
    st.text(max_size=20),
    st.dictionaries(
        st.sampled_from(["messages", "id", "tags", "origin", "x"]),
        st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5),
    ),
    st.just(TURN),
)


@given(st.lists(JUNK, max_size=12))
def test_every_row_is_accounted_for(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    path = write_lines(
        tmp_path_factory.mktemp("a") / "a.jsonl", *[json.dumps(row) for row in [*[TURN] * 60, *rows]]
    )
    examples, log = read_all(path)
    assert log.report().num_rows == 60 + len(rows)
    assert len({example.example_id for example in examples}) == len(examples)
