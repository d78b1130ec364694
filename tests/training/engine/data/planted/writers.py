"""The planted data sets as the files that teams have: encodings, tables, compression, folders."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.training.engine.data.planted.backgrounds import compose
from tests.training.engine.data.planted.material import Material

Writer = Callable[[Material, Path], Path]
HEADER = "id,prompt,completion"


def write_sources(form: str, material: Material, folder: Path) -> Path:
    """Write a data set in one of ``WRITERS`` and return what is given to a preparation."""
    folder.mkdir()
    return WRITERS[form](material, folder)


def _as_records(material: Material, *, delimiter: str = ",", header: str = HEADER) -> str:
    """Return the data set as CSV; planted lines that are no JSON are CSV already."""
    text = io.StringIO(newline="")
    text.write(header.replace(",", delimiter) + "\n")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    for line, is_planted in material.lines:
        if is_planted and not line.startswith("{"):
            text.write(line + "\n")
            continue
        row = json.loads(line)
        writer.writerow([row["id"], *(message["content"] for message in row["messages"])])
    return text.getvalue()


def _write(name: str, make: Callable[[Material], str], encoding: str = "utf-8") -> Writer:
    def write(material: Material, folder: Path) -> Path:
        path = folder / name
        path.write_bytes(make(material).encode(encoding))
        return path

    return write


def _as_jsonl(material: Material) -> str:
    return material.text


def _planted_in(encoding: str) -> Writer:
    def write(material: Material, folder: Path) -> Path:
        path = folder / "raw.jsonl"
        path.write_bytes(
            b"".join(f"{line}\n".encode(encoding if planted else "utf-8") for line, planted in material.lines)
        )
        return path

    return write


def _as_pairs(material: Material) -> str:
    """Return lines of prompt and completion; planted ones are of that form already."""
    lines = []
    for line, is_planted in material.lines:
        row = json.loads(line)
        if not is_planted:
            user, answer = (message["content"] for message in row["messages"])
            row = {"id": row["id"], "prompt": user, "completion": answer}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines)


def _as_two_shapes(material: Material) -> str:
    rows = (json.loads(line) for line, _ in material.lines)
    return "".join(
        json.dumps({"prompt": user, "completion": answer, "question": user, "answer": answer}) + "\n"
        for user, answer in ((message["content"] for message in row["messages"]) for row in rows)
    )


def _as_cut_list(material: Material) -> str:
    text = "[" + ",\n".join(line for line, _ in material.lines) + "]"
    return text[: len(text) * 3 // 4]


def _write_cut_gzip(material: Material, folder: Path) -> Path:
    path = folder / "raw.jsonl.gz"
    whole = gzip.compress(material.text.encode(), mtime=0)
    path.write_bytes(whole[: len(whole) * 3 // 4])
    return path


def _write_spreadsheet(material: Material, folder: Path) -> Path:
    path = folder / "raw.csv"
    # The first bytes of every zip file, and so of every .xlsx.
    path.write_bytes(b"PK\x03\x04" + material.text.encode())
    return path


def _write_two_splits(material: Material, folder: Path) -> Path:
    (folder / "train.jsonl").write_text(material.text, encoding="utf-8")
    rows = compose("replies-en", 10, seed=21, prefix="t")
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def _write_beside_empty(material: Material, folder: Path) -> Path:
    (folder / "part-1.jsonl").write_text(material.text, encoding="utf-8")
    (folder / "part-2.jsonl").write_text("\n", encoding="utf-8")
    return folder


def _write_general_folder(material: Material, folder: Path) -> Path:
    """Write the planted lines, which are no fault there, into ``general/``."""
    (folder / "general").mkdir()
    for name, is_general in (("raw.jsonl", False), ("general/raw.jsonl", True)):
        lines = [line for line, planted in material.lines if planted is is_general]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


WRITERS: Mapping[str, Writer] = {
    "jsonl": _write("raw.jsonl", _as_jsonl),
    "jsonl-with-bom": _write("raw.jsonl", _as_jsonl, "utf-8-sig"),
    "utf-32": _write("raw.jsonl", _as_jsonl, "utf-32"),
    "planted-in-gb18030": _planted_in("gb18030"),
    "planted-in-latin-1": _planted_in("latin-1"),
    "csv": _write("raw.csv", _as_records),
    "gb18030-csv": _write("raw.csv", _as_records, "gb18030"),
    "utf-16-tsv": _write("raw.tsv", lambda material: _as_records(material, delimiter="\t"), "utf-16"),
    "misspelt-csv": _write("raw.csv", lambda material: _as_records(material, header="id,promt,completion")),
    "twice-named-csv": _write("raw.csv", lambda material: _as_records(material, header="id,prompt,prompt")),
    "cr-csv": _write("raw.csv", lambda material: _as_records(material).replace("\n", "\r")),
    "pairs": _write("raw.jsonl", _as_pairs),
    "two-shapes": _write("raw.jsonl", _as_two_shapes),
    "cut-json": _write("raw.json", _as_cut_list),
    "cut-gzip": _write_cut_gzip,
    "spreadsheet": _write_spreadsheet,
    "two-splits": _write_two_splits,
    "empty-file-beside": _write_beside_empty,
    "general-folder": _write_general_folder,
}
