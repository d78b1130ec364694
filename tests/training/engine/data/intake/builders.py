import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from training.engine.data.examples import Example
from training.engine.data.intake.encodings import TextEncoding
from training.engine.data.intake.formats.text_file import TextFile
from training.engine.data.intake.reading import IntakeLog, read_raw
from training.engine.data.intake.rows import RawRow, UnreadableRow
from training.engine.data.intake.settings import IntakeLimits, IntakeSettings

TURN = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}


def turn(question: str = "q", answer: str = "a", **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"messages": messages, **fields}


def write_lines(path: Path, *rows: Any, encoding: str = "utf-8") -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return path


def text_file(path: Path, *, name: str = "utf-8", is_gzip: bool = False, **limits: int) -> TextFile:
    encoding = TextEncoding(name=name, confidence="stated", reason="stated")
    return TextFile(path=path, is_gzip=is_gzip, encoding=encoding, limits=IntakeLimits(**limits))


def read_all(path: Path, **raw: Any) -> tuple[list[Example], IntakeLog]:
    log = IntakeLog()
    examples = list(read_raw(path, IntakeSettings.from_json(raw), bad_rows=log))
    report = log.report()
    assert report.num_rows == report.num_examples + report.num_bad + report.num_left_out
    assert report.num_examples == len(examples)
    return examples, log


def codes(rows: Iterable[RawRow | UnreadableRow]) -> dict[int, str]:
    return {row.number: row.fault.code for row in rows if isinstance(row, UnreadableRow)}


def values(rows: Iterable[RawRow | UnreadableRow]) -> Iterator[Any]:
    return (row.values for row in rows if isinstance(row, RawRow))
