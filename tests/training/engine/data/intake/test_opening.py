import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.training.engine.data.intake.builders import values
from training.engine.data.intake.opening import OpenedFile, open_source
from training.engine.data.intake.rows import FileRefused
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.sources import list_sources


def opened(path: Path, **raw: Any) -> OpenedFile:
    settings = IntakeSettings.from_json(raw)
    (source,), _ = list_sources(path, settings)
    return open_source(source, settings)


@pytest.mark.parametrize(
    ("name", "content", "expected", "notices"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": 2}\n', "jsonl", []),
        ("a.json", '{"a": 1}\n{"a": 2}\n', "jsonl", ["format-unlike-name"]),
        ("a.json", '[{"a": 1}]', "json", []),
        ("a.jsonl", '\n [{"a": 1}]', "json", ["format-unlike-name"]),
        ("a.json", '{"data": [{"a": 1}]}', "json", []),
        ("a.json", '{\n "data": [{"a": 1}]}', "json", []),
        ("a.jsonl", '{\n "data": [{"a": 1}]}', "json", ["format-unlike-name"]),
        ("a.jsonl", '{"data": [{"a": 1}]}', "jsonl", []),
        ("a.json", '{"a": 1}', "jsonl", ["format-unlike-name"]),
        ("a.jsonl", '{"a": NaN}\n{"a": 1}\n', "jsonl", []),
        ("a.jsonl", '{"a": 1\n{"a": 1}\n', "jsonl", []),
        ("a.jsonl", "", "jsonl", []),
        ("a.txt", '{"a": 1}\n', "jsonl", []),
        ("a.csv", "a,b\n1,2\n", "csv", []),
        ("a.jsonl", "not json\n", "jsonl", []),
    ],
)
def test_formats_by_content(
    tmp_path: Path, name: str, content: str, expected: str, notices: list[str]
) -> None:
    (tmp_path / name).write_text(content)
    file = opened(tmp_path / name)
    assert file.format == expected
    assert [notice.code for notice in file.notices] == notices


def test_unknown_content_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("question\tanswer\n")
    with pytest.raises(FileRefused) as caught:
        opened(tmp_path / "a.txt")
    assert caught.value.fault.code == "format-unknown"
    assert opened(tmp_path / "a.txt", format="tsv").columns == ("question", "answer")


def test_a_stated_format_is_not_questioned(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}\n{"a": 2}\n')
    assert opened(tmp_path / "a.json", format="json").format == "json"


def test_notices_of_the_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    file = opened(tmp_path / "a.jsonl")
    assert [notice.code for notice in file.notices] == ["byte-order-mark"]
    assert list(values(file.iterate_rows())) == [{"a": 1}]
    (tmp_path / "b.jsonl").write_bytes('{"a": "订单"}\n'.encode("gb18030"))
    assert [notice.code for notice in opened(tmp_path / "b.jsonl").notices] == ["encoding-likely"]
    assert opened(tmp_path / "b.jsonl", encoding="gb18030").notices == ()


def test_names_of_classes_come_from_a_saved_dataset(tmp_path: Path) -> None:
    with (tmp_path / "d.arrow").open("wb") as sink:
        table = pa.table({"text": ["好"], "label": [1]})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    (tmp_path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "d.arrow"}]}))
    features = {"label": {"_type": "ClassLabel", "names": ["neg", "pos"]}}
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features}))
    file = opened(tmp_path)
    assert list(values(file.iterate_rows())) == [{"text": "好", "label": "pos"}]
    assert [notice.code for notice in file.notices] == ["class-names"]


def test_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "a.parquet")
    file = opened(tmp_path / "a.parquet")
    assert (file.format, file.columns, file.encoding) == ("parquet", ("a", "b"), None)
    assert list(values(file.iterate_rows({"b"}))) == [{"b": 2}]
