"""Hostile files through a whole preparation: a clear result or a refusal with a code, nothing half done."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.training.engine.data.planted.backgrounds import Row, compose
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.run import PreparationResult, run_preparation
from training.engine.data.program.app import main
from training.engine.data.recipe import Recipe
from training.engine.errors import DataInvalid
from training.engine.progress import SilentReporter

ROOT = Path(__file__).resolve().parents[4]
NUM_ROWS = 24


def clean_lines(num_rows: int = NUM_ROWS, background: str = "replies-en") -> list[bytes]:
    return [
        json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in compose(background, num_rows, seed=31)
    ]


def make_row(row_id: str, question: str, answer: str) -> Row:
    return {
        "id": row_id,
        "messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}],
    }


def prepare(folder: Path, source: Path, intake: Mapping[str, Any] | None = None) -> PreparationResult:
    scratch = folder / "scratch"
    scratch.mkdir()
    return run_preparation(
        PreparationInputs(sources=source),
        Recipe.from_json({"intake": {"reference_source": "person", **(intake or {})}}),
        output=folder / "prepared",
        scratch=scratch,
        report=SilentReporter(),
    )


def read_dropped(folder: Path) -> list[tuple[str, str, str]]:
    lines = (folder / "prepared/dropped.jsonl").read_text(encoding="utf-8").split("\n")
    dropped = [json.loads(line) for line in lines if line]
    return [(item["step"], *item["reasons"], item["example"]["id"]) for item in dropped]


def require_all_accounted_for(result: PreparationResult, folder: Path) -> None:
    intake = result.report["intake"]
    assert intake["num_rows"] == intake["num_examples"] + intake["num_bad"] + intake["num_left_out"]
    num_written = sum(written.num_examples for written in result.sets.values())
    assert num_written == intake["num_examples"] - len(read_dropped(folder))
    assert json.loads((folder / "prepared/report.json").read_text(encoding="utf-8")) == result.report


def require_refused(folder: Path, source: Path, code: str, **intake: Any) -> None:
    with pytest.raises(DataInvalid) as caught:
        prepare(folder, source, intake)
    assert code in {caught.value.code, *(fault.code for fault in caught.value.faults)}
    assert len(str(caught.value)) < 2000
    assert not (folder / "prepared/report.json").exists()
    assert not (folder / "prepared/sets").exists()


def test_a_line_of_megabytes_costs_itself_only(tmp_path: Path) -> None:
    source = tmp_path / "raw.jsonl"
    lines = clean_lines()
    huge = json.dumps(make_row("huge", "x" * 6_000_000, "y")).encode() + b"\n"
    source.write_bytes(b"".join([*lines[:9], huge, *lines[9:]]))
    result = prepare(tmp_path, source, {"limits": {"max_line_bytes": 65536}})
    require_all_accounted_for(result, tmp_path)
    assert result.report["intake"]["reasons"] == {"row-too-long": 1}
    assert result.sets["train"].num_examples == NUM_ROWS
    assert max(path.stat().st_size for path in (tmp_path / "prepared").iterdir() if path.is_file()) < 100_000


@pytest.mark.parametrize(
    "content", [b'{"id":"a","messages":"' + b"x" * 3_000_000, b"x" * 3_000_000, b"[" * 3_000_000]
)
def test_a_file_of_one_endless_line_is_refused(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "raw.jsonl"
    source.write_bytes(content)
    require_refused(tmp_path, source, "no-examples")


def test_nul_bytes_are_bad_rows(tmp_path: Path) -> None:
    source = tmp_path / "raw.jsonl"
    lines = clean_lines()
    lines[3] = lines[3].replace(b"content", b"cont\x00nt")
    lines[5] = b"\x00" * 5000 + b"\n"
    lines[7] = lines[7].replace(b'"id": "b', b'"id": "\\u0000')
    source.write_bytes(b"".join(lines))
    result = prepare(tmp_path, source)
    require_all_accounted_for(result, tmp_path)
    assert result.report["intake"]["reasons"] == {"nul-character": 3}
    assert b"\x00" not in b"".join(path.read_bytes() for path in (tmp_path / "prepared").rglob("*.*"))


def test_a_file_of_nul_bytes_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "raw.csv"
    source.write_bytes(bytes(1_000_000))
    require_refused(tmp_path, source, "csv-header-invalid")


def test_a_file_half_in_one_encoding_and_half_in_another_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "raw.jsonl"
    lines = clean_lines(background="replies-zh")
    source.write_bytes(
        b"".join(
            line.decode().encode("gb18030" if number % 2 else "utf-8") for number, line in enumerate(lines)
        )
    )
    require_refused(tmp_path, source, "encoding-mixed")


def test_a_csv_of_line_breaks_and_open_quotes_loses_no_clean_row(tmp_path: Path) -> None:
    source = tmp_path / "raw.csv"
    records = ["id,prompt,completion"]
    for row in compose("replies-en", NUM_ROWS, seed=31):
        question, answer = (message["content"] for message in row["messages"])
        records.append(f'{row["id"]},"{question}\r\n\n","{answer}\n(signed, ""{row["id"]}"")"')
        records += ['"' * 101 + "," * 50, "," * 50]
    records.append('open,"' + "never closed " * 20_000)
    source.write_text("\n".join(records), encoding="utf-8", newline="")
    result = prepare(tmp_path, source)
    require_all_accounted_for(result, tmp_path)
    kept = {json.loads(line)["id"] for line in result.sets["train"].path.read_text().splitlines()}
    assert kept == {f"b{number + 1:02d}" for number in range(NUM_ROWS)}
    assert set(result.report["intake"]["reasons"]) == {"csv-quotes", "csv-cell-count"}


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_json_100_000_deep_is_one_bad_row(tmp_path: Path, ending: str) -> None:
    source = tmp_path / f"raw.{ending}"
    lines = [line.rstrip() for line in clean_lines()]
    lines.insert(4, b"[" * 100_000 + b"]" * 100_000)
    lines.insert(8, b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
    source.write_bytes(b"\n".join(lines) if ending == "jsonl" else b"[" + b",".join(lines) + b"]")
    result = prepare(tmp_path, source)
    require_all_accounted_for(result, tmp_path)
    assert result.report["intake"]["reasons"] == {"too-deep": 2}


def test_answers_of_json_100_000_deep_are_dropped(tmp_path: Path) -> None:
    source = tmp_path / "raw.jsonl"
    deep = [
        make_row("deep1", "How deep is it?", "[" * 100_000 + "]" * 100_000),
        make_row("deep2", "And this one?", '{"a":' * 100_000 + "1" + "}" * 100_000),
    ]
    lines = clean_lines(background="tickets-en")
    source.write_bytes(b"".join([*lines, *(json.dumps(row).encode() + b"\n" for row in deep)]))
    result = prepare(tmp_path, source)
    require_all_accounted_for(result, tmp_path)
    assert read_dropped(tmp_path) == [
        ("canonical_json", "too-deep", "deep1"),
        ("canonical_json", "too-deep", "deep2"),
    ]


def test_a_gzip_bomb_is_refused_at_its_bound(tmp_path: Path) -> None:
    source = tmp_path / "raw.jsonl.gz"
    # 64 MB of one byte are 64 kB compressed.
    source.write_bytes(b"".join([gzip.compress(b"".join(clean_lines())), gzip.compress(bytes(64 << 20), 6)]))
    assert source.stat().st_size < 200_000
    require_refused(tmp_path, source, "decompressed-too-large", limits={"max_decompressed_bytes": 1_000_000})


SLOW_PATTERNS = (
    *("a.", "a@a.a@", "1 ", "(", '{"a":[', " \n", "token=token=", "5 March 2024 to ", "+86 139 1726 4830 "),
    *("Human:\n", "首先其次", "汉(a),"),
)
RUN, RUNS_PER_TEXT = 50_000, 6


def make_slow_texts() -> list[str]:
    """Return texts of 300 kB for rules that look back or start anew at every place: long runs of one pattern
    after the other.
    """
    runs = [(pattern * (RUN // len(pattern) + 1))[:RUN] for pattern in SLOW_PATTERNS]
    return [
        "What now?\n" + "\n".join(runs[place : place + RUNS_PER_TEXT])
        for place in range(0, len(runs), RUNS_PER_TEXT)
    ]


@pytest.mark.timeout(60)
def test_texts_made_to_be_slow_pass_all_steps_and_checks(tmp_path: Path) -> None:
    source = tmp_path / "raw.jsonl"
    quotes = [f"2024/{number % 12 + 1}/{number % 28 + 1}" for number in range(20_000)]
    texts = [*make_slow_texts(), "What now?\n" + " ".join(quotes)]
    answers = [*("".join(reversed(text))[:RUN] for text in texts[:-1]), json.dumps(quotes)]
    rows = [
        json.dumps(make_row(f"slow{number}", text, answer), ensure_ascii=False).encode() + b"\n"
        for number, (text, answer) in enumerate(zip(texts, answers, strict=True))
    ]
    source.write_bytes(b"".join([*clean_lines(), *rows]))
    result = prepare(tmp_path, source)
    require_all_accounted_for(result, tmp_path)
    assert result.report["intake"]["num_examples"] == NUM_ROWS + len(rows)
    assert {name for _, _, name in read_dropped(tmp_path)} <= {f"slow{number}" for number in range(len(rows))}


PROGRAMS = {
    "function": """
import sys
from pathlib import Path
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.run import run_preparation
from training.engine.data.recipe import Recipe
from training.engine.progress import SilentReporter
scratch = Path(sys.argv[2]).with_suffix(".scratch")
scratch.mkdir()
run_preparation(PreparationInputs(sources=Path(sys.argv[1])), Recipe.from_json({}), output=Path(sys.argv[2]),
                scratch=scratch, report=SilentReporter())
""",
    "command": """
import sys
from training.engine.data.program.app import main
main(["clean", sys.argv[1], "--out", sys.argv[2]])
""",
}


def kill_half_way(program: str, source: Path, target: Path) -> None:
    """Start a preparation and kill it when it has begun to write, long before it can be done."""
    environment = {**os.environ, "TMPDIR": str(target.parent), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(source), str(target)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while process.poll() is None and not list(target.parent.glob("**/dropped.jsonl")):
            time.sleep(0.02)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_killed_run_leaves_nothing_that_looks_whole_and_a_second_one_works(
    name: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "raw.jsonl", tmp_path / "results" / "prepared"
    source.write_bytes(b"".join(clean_lines(2000)))
    target.parent.mkdir()
    kill_half_way(PROGRAMS[name], source, target)
    assert list(target.parent.glob("**/report.json")) == []
    assert list(target.parent.glob("**/train.jsonl")) == []
    if name == "command":
        assert not target.exists()
    source.write_bytes(b"".join(clean_lines()))
    if name == "command":
        with pytest.raises(SystemExit) as ended:
            main(["clean", str(source), "--out", str(target)])
        assert ended.value.code == 0
        assert (target / "report.json").is_file()
    else:
        (tmp_path / "again").mkdir()
        assert prepare(tmp_path / "again", source).sets["train"].num_examples == NUM_ROWS
