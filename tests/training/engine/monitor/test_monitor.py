"""Each symptom once, resource faults first, the rest held back; and what a resumption does."""

import json
from pathlib import Path

import pytest

from tests.training.engine.monitor.streams import falling, make_held_out, make_step, told, watch
from tests.training.engine.reporters import RecordingReporter
from training.engine.handbook.rows import HandbookRow
from training.engine.monitor.journal import StepJournal
from training.engine.monitor.monitor import Monitor


def test_a_finding_is_told_once_as_a_record() -> None:
    monitor = watch([2.0, 1.99] * 60)
    report = monitor._report
    assert isinstance(report, RecordingReporter)
    assert [name for name, _ in report.records] == ["finding"]
    document = report.records[0][1]
    assert set(document) == {
        "code", "row", "class", "severity", "step", "message", "evidence", "treatment"
    }  # fmt: skip
    assert (document["code"], document["row"], document["class"]) == (
        "monitor/loss-flat",
        "loss-flat",
        "not-converging",
    )
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert [level for level, _ in report.logs] == ["error"]


def test_a_resource_fault_is_told_before_another_of_the_same_step() -> None:
    monitor = watch([2.0, 1.99] * 25, num_steps=50, num_padded_tokens=[100] * 49 + [10**6])
    assert [code for code, _, _ in told(monitor)] == ["padding-waste", "loss-flat"]


def test_while_a_resource_or_numeric_fault_is_open_the_rest_is_held_back() -> None:
    monitor = watch([2.0, 1.99] * 30, gradient_norm=None)
    assert told(monitor) == [("float16-overflows", "error", 1)]
    assert [finding.code for finding in monitor.held_back] == ["monitor/loss-flat"]
    report = monitor._report
    assert isinstance(report, RecordingReporter)
    assert report.logs[-1] == (
        "info",
        "Held back until loss-not-finite is mended, which spoils them: monitor/loss-flat.",
    )


@pytest.mark.parametrize(
    ("step", "is_evaluation", "row", "code"),
    [
        (1, False, HandbookRow.OUT_OF_MEMORY_AT_START, "monitor/out-of-memory-at-start"),
        (7, False, HandbookRow.OUT_OF_MEMORY_LATER, "monitor/out-of-memory-later"),
        (7, True, HandbookRow.MEMORY_GROWS_AT_EVALUATION, "monitor/out-of-memory-at-evaluation"),
    ],
)
def test_out_of_memory(step: int, is_evaluation: bool, row: HandbookRow, code: str) -> None:
    monitor = Monitor(RecordingReporter())
    monitor.on_out_of_memory(
        step=step, batch_lengths=[900, 40], row_lengths=[40, 50, 60, 900], is_evaluation=is_evaluation
    )
    (finding,) = monitor.findings
    assert (finding.row, finding.code, finding.step) == (row, code, step)
    assert finding.evidence["longest_in_batch_tokens"] == 900
    assert finding.evidence["median_row_tokens"] == 55


def test_out_of_memory_without_a_step_is_in_the_next_one() -> None:
    monitor = watch(falling(6))
    monitor.on_out_of_memory()
    assert [(f.row, f.step) for f in monitor.findings] == [(HandbookRow.OUT_OF_MEMORY_LATER, 7)]
    fresh = Monitor(RecordingReporter())
    fresh.on_out_of_memory()
    assert [f.row for f in fresh.findings] == [HandbookRow.OUT_OF_MEMORY_AT_START]


def test_after_a_leak_the_first_treatment_is_to_find_it() -> None:
    monitor = watch(falling(130), memory_bytes=[10**9 + 2 * step * (1 << 20) for step in range(130)])
    monitor.on_out_of_memory()
    assert monitor.findings[-1].treatment.startswith("Look for logging")


def test_not_finite() -> None:
    monitor = Monitor(RecordingReporter())
    monitor.on_not_finite(step=12, what="gradient norm")
    assert [(f.row, f.step) for f in monitor.findings] == [(HandbookRow.LOSS_NOT_FINITE, 12)]


def feed(monitor: Monitor, losses: list[float], steps: range) -> None:
    for step in steps:
        monitor.on_step(make_step(step, losses[step - 1]))
        if step % 20 == 0:
            monitor.on_held_out(make_held_out(step, 1.0))


def test_a_resumed_run_tells_the_same_as_one_without_a_break(tmp_path: Path) -> None:
    losses = [2.0, 1.99] * 40
    whole = Monitor(RecordingReporter())
    feed(whole, losses, range(1, 81))
    path = tmp_path / "kept" / "steps.jsonl"
    feed(Monitor(RecordingReporter(), journal=StepJournal(path)), losses, range(1, 36))
    with path.open("a") as file:
        file.write('{"step": {"step": 36, "num_st')  # The process was killed while it wrote.
    resumed = Monitor(RecordingReporter(), journal=StepJournal(path))
    feed(resumed, losses, range(31, 81))  # From the checkpoint of step 30 on; 31 to 35 are done again.
    assert resumed.findings == whole.findings
    assert resumed.history.losses == whole.history.losses
    assert [record.step for record in resumed.history.held_out] == [20, 40, 60, 80]
    again = StepJournal(path).take_over(before_step=81)
    assert len(again) == 84


def test_without_its_past_the_start_is_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    feed(Monitor(RecordingReporter(), journal=StepJournal(path)), [2.0, 1.99] * 40, range(1, 21))
    resumed = Monitor(RecordingReporter(), journal=StepJournal(path))
    feed(resumed, [2.0, 1.99] * 80, range(31, 151))  # Steps 21 to 30 are missing.
    assert resumed.findings == []
    assert resumed.history.first_step == 31


def test_a_new_run_in_the_same_folder_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    feed(Monitor(RecordingReporter(), journal=StepJournal(path)), [2.0] * 20, range(1, 21))
    other = Monitor(RecordingReporter(), journal=StepJournal(path))
    feed(other, falling(30), range(1, 31))
    assert len(other.history) == 30
    assert path.read_text().count('"step": {') == 30
