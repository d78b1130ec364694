"""Following events.jsonl while it grows."""

import itertools
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from registry.choices import JobEventType
from workers.event_tail import EventTail
from workers.job.events import MAX_LINE_BYTES, EventWriter


def line(**values: Any) -> bytes:
    return json.dumps({"at": "2030-01-02T03:04:05.678+00:00", **values}).encode() + b"\n"


def log(message: str) -> bytes:
    return line(type="log", level="info", message=message)


def progress(fraction: float) -> bytes:
    return line(type="progress", fraction=fraction, message=f"at {fraction}")


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_a_file_that_is_not_there_yet_has_no_news(tmp_path: Path) -> None:
    assert EventTail(tmp_path / "events.jsonl").read_new().events == ()


def test_half_a_line_waits_for_the_other_half(tmp_path: Path) -> None:
    path, whole = tmp_path / "events.jsonl", log("é and more")
    tail = EventTail(path)
    cut = whole.index(b"\\u00e9") + 3
    append(path, whole[:cut])
    assert tail.read_new().events == ()
    append(path, whole[cut:])
    assert [event.message for event in tail.read_new().events] == ["é and more"]
    assert tail.read_new().events == ()


def test_of_progress_that_follows_progress_the_last_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append(path, progress(0.1) + progress(0.2) + log("x") + progress(0.3) + progress(0.4))
    batch = EventTail(path).read_new()
    assert [event.message for event in batch.events] == ["at 0.2", "x", "at 0.4"]
    assert (batch.fraction, batch.message) == (0.4, "at 0.4")


def test_damaged_lines_become_warnings_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    damaged = [b"{\n", b"[1]\n", b"\xff\n", line(type="bake"), b'{"type":"log"}\n', b"\n"]
    append(path, b"".join(damaged) + log("good"))
    events = EventTail(path).read_new().events
    assert [event.level for event in events] == ["warning"] * 5 + ["info"]


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append(path, b"x" * (MAX_LINE_BYTES + 1))
    tail = EventTail(path)
    tail.read_new()
    append(path, b"\n" + log("good"))
    assert [event.message for event in tail.read_new().events] == ["good"]


@given(cuts=st.lists(st.integers(min_value=0, max_value=600), max_size=6))
def test_any_cutting_gives_the_same_events(tmp_path_factory: Any, cuts: list[int]) -> None:
    path = tmp_path_factory.mktemp("tail") / "events.jsonl"
    content = b"".join(log(f"message {number}") for number in range(5))
    tail, messages = EventTail(path), []
    bounds = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    for start, end in itertools.pairwise(bounds):
        append(path, content[start:end])
        messages += [event.message for event in tail.read_new().events]
    assert messages == [f"message {number}" for number in range(5)]


def test_the_rest_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    append(path, b"".join(log("x" * 3000) for _ in range(600)))
    batches = list(EventTail(path).read_rest())
    assert len(batches) == 2
    assert sum(len(batch.events) for batch in batches) == 600
    assert {event.type for batch in batches for event in batch.events} == {JobEventType.LOG}


def test_a_document_is_read_and_a_damaged_or_endless_one_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventWriter(path) as report:
        report.record("finding", {"code": "x", "step": 3})
        report.record("preflight", {"text": "\ud800"})
    sound = path.read_bytes()
    append(path, sound.split(b"\n")[0][:-20] + b"\n")
    append(path, line(type="record", message="x", values=[1]))
    append(path, line(type="record", message="x", values={"a": "x" * MAX_LINE_BYTES}))
    events = [event for batch in EventTail(path).read_rest() for event in batch.events]
    assert [(event.type, event.level) for event in events] == [
        *[("record", "")] * 2,
        *[("log", "warning")] * 3,
    ]
    assert (events[0].message, events[0].values) == ("finding", {"code": "x", "step": 3})
