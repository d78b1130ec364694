"""events.jsonl: whole lines, bounded messages, no numbers that JSON does not know."""

import json
import threading
from pathlib import Path
from typing import Any

from workers.job.events import MAX_LINE_BYTES, MAX_MESSAGE_CHARS, EventWriter


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_each_call_is_one_line_at_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as report:
        report.progress(0.25, "quarter")
        assert len(read(path)) == 1, "a reader sees the line before the file is closed"
        report.log("warning", "line\nbreak \u2028 and more")
        report.metric(3, {"loss": float("nan"), "rate": 0.5})
    events = read(path)
    assert [event["type"] for event in events] == ["progress", "log", "metric"]
    assert events[0]["fraction"] == 0.25
    assert events[1]["message"] == "line\nbreak \u2028 and more"
    assert events[2]["values"] == {"loss": None, "rate": 0.5}


def test_fractions_and_messages_stay_within_bounds(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as report:
        for fraction in (-1.0, 7.0, float("nan")):
            report.progress(fraction, "x" * 10_000)
    assert [event["fraction"] for event in read(path)] == [0.0, 1.0, 0.0]
    assert {len(event["message"]) for event in read(path)} == {MAX_MESSAGE_CHARS}


def write_lines(report: EventWriter) -> None:
    for _ in range(50):
        report.log("info", "x" * 3000)


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as report:
        threads = [threading.Thread(target=write_lines, args=(report,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(read(path)) == 200


def test_a_document_keeps_its_texts_and_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as report:
        report.record("preflight", {"text": "发票 \ud800 \u2028", "number": 0.5})
        # Three bytes each in UTF-8; as ASCII escapes they would be too long.
        report.record("mini", {"text": "票" * 80_000})
        report.record("not_finite", {"text": "x" * MAX_LINE_BYTES})
    first, second, third = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    assert (first["type"], first["message"]) == ("record", "preflight")
    assert first["values"] == {"text": "发票 \ud800 \u2028", "number": 0.5}
    assert len(second["values"]["text"]) == 80_000
    assert (third["type"], third["level"]) == ("log", "warning")
    assert "'not_finite'" in third["message"]
