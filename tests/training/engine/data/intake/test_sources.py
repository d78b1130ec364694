import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from training.engine.data.intake.rows import FileRefused
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.sources import SourceFile, list_sources


def listed(path: Path, **raw: Any) -> tuple[list[SourceFile], dict[str, str]]:
    files, notices = list_sources(path, IntakeSettings.from_json(raw))
    return list(files), {notice.code: notice.message for notice in notices}


def refusal(path: Path, **raw: Any) -> str:
    with pytest.raises(FileRefused) as caught:
        listed(path, **raw)
    return caught.value.fault.code


def put(folder: Path, *names: str, content: bytes = b"{}\n") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.jsonl", b"{}", ("jsonl", False)),
        ("a.NDJSON", b"{}", ("jsonl", False)),
        ("a.json.gz", gzip.compress(b"[]", mtime=0), ("json", True)),
        ("a.csv", gzip.compress(b"a,b", mtime=0), ("csv", True)),
        ("a.tsv", b"", ("tsv", False)),
        ("a.txt", b"", ("auto", False)),
        ("a", b"PAR1", ("parquet", False)),
        ("a.bin", b"ARROW1\0\0", ("arrow", False)),
    ],
)
def test_formats(tmp_path: Path, name: str, content: bytes, expected: tuple[str, bool]) -> None:
    put(tmp_path, name, content=content)
    (file,), _ = listed(tmp_path / name)
    assert (file.format, file.is_gzip) == expected
    assert file.name == name
    (stated,), _ = listed(tmp_path / name, format="csv")
    assert stated.format == "csv"


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04..", b"\xd0\xcf\x11\xe0", b"%PDF-1.7", b"BZh9", b"SQLite format 3\0"]
)
def test_formats_that_are_not_read_say_what_to_do(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "a.csv", content=content)
    with pytest.raises(FileRefused) as caught:
        listed(tmp_path / "a.csv")
    assert caught.value.fault.code == "format-unread"
    assert caught.value.fault.remedy


def test_compressed_tables_are_not_read(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", content=gzip.compress(b"x"))
    assert refusal(tmp_path / "a.parquet") == "format-unread"


def test_a_folder_in_order_with_what_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, "b.csv", "a.jsonl", "sub/c.json", "general/g.jsonl")
    put(
        tmp_path,
        "loader.py",
        "README.md",
        "schema.json",
        ".git/x.jsonl",
        ".a.csv",
        "d/e/f/g/h/i/j/deep.csv",
    )
    (tmp_path / "linked.jsonl").symlink_to(tmp_path / "a.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.jsonl")
    files, notices = listed(tmp_path)
    assert [(file.name, file.is_general) for file in files] == [
        ("a.jsonl", False),
        ("b.csv", False),
        ("general/g.jsonl", True),
        ("linked.jsonl", False),
        ("sub/c.json", False),
    ]
    assert notices == {
        "loading-script-left-out": "1 file(s) left out, code is never run: loader.py.",
        "other-file-left-out": "1 file(s) left out, no known data format by their names: README.md.",
        "metadata-left-out": "1 file(s) left out, they describe data: schema.json.",
        "hidden-file-left-out": "2 file(s) left out, names that begin with a dot are hidden: .a.csv, .git.",
        "linked-folder-left-out": "1 file(s) left out, links to folders are not followed: loop.",
        "special-file-left-out": "1 file(s) left out, no regular files: pipe.jsonl.",
        "deep-folder-left-out": "1 file(s) left out, folders are read 6 deep: d/e/f/g/h/i/j.",
    }


def test_nothing_to_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "gone") == "data-file-missing"
    put(tmp_path, "README.md")
    assert refusal(tmp_path) == "data-file-missing"


def test_stems_of_made_ids_never_agree(tmp_path: Path) -> None:
    put(tmp_path, "train.csv", "train.jsonl", "a-b.jsonl", "a/b.jsonl", "v1.2.csv.gz", "only.csv")
    files, _ = listed(tmp_path)
    stems = {file.name: file.stem for file in files}
    assert len(set(stems.values())) == 6
    assert (stems["only.csv"], stems["v1.2.csv.gz"]) == ("only", "v1.2")
    assert stems["train.csv"].startswith("train.csv-")


def test_splits(tmp_path: Path) -> None:
    put(tmp_path, "data/train-00000-of-00001.jsonl", "data/test-00000-of-00001.jsonl", "extra.jsonl")
    files, notices = listed(tmp_path)
    assert [file.split for file in files] == ["test", "train", None]
    assert "test, train" in notices["several-splits"]
    files, notices = listed(tmp_path, splits=["train"])
    assert [file.name for file in files] == ["data/train-00000-of-00001.jsonl", "extra.jsonl"]
    assert "several-splits" not in notices
    assert "data/test-00000" in notices["split-left-out"]
    assert refusal(tmp_path, splits=["validation"]) == "split-unknown"
    # A single file is read whatever its name says.
    (file,), _ = listed(tmp_path / "data" / "test-00000-of-00001.jsonl")
    assert file.split is None


def test_names_that_are_no_text(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.jsonl", "wb") as file:
        file.write(b"{}")
    (found,), _ = listed(tmp_path)
    assert found.name == "\ufffd.jsonl"
    assert found.path.is_file()


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.engine.data.intake.sources.MAX_FILES", 2)
    put(tmp_path, "1.csv", "2.csv", "3.csv")
    assert refusal(tmp_path) == "too-many-files"
