import json

from registry.artifacts.findings import Finding
from training.engine.data.intake.intake_log import MAX_NOTICES, IntakeLog
from training.engine.data.intake.rows import BadRow
from training.engine.data.intake.shapes.shape import CONTENT_PARTS_JOINED


def test_counts_and_details() -> None:
    log = IntakeLog(max_listed=2)
    first = log.start_file("a.jsonl", format="jsonl", encoding="utf-8", shape="messages", split=None)
    second = log.start_file("b.csv", format="csv", encoding="gb18030", shape="columns", split="train")
    first.num_examples, second.num_examples = 5, 2
    first.left_out["not-adopted"] += 3
    second.notes[CONTENT_PARTS_JOINED] += 4
    for tally, row, code in ((first, 1, "not-json"), (first, 2, "too-deep"), (second, 1, "too-deep")):
        log.add_bad(
            tally, BadRow(file=tally.name, row=row, code=code, message="坏", place="line 1", excerpt="x")
        )
    report = log.report()
    assert (report.num_rows, report.num_examples, report.num_bad, report.num_left_out) == (13, 7, 3, 3)
    assert report.reasons == {"too-deep": 2, "not-json": 1}
    assert [file.num_rows for file in report.files] == [10, 3]
    assert report.num_listed_bad_rows == 2
    assert [notice.code for notice in report.notices] == [CONTENT_PARTS_JOINED]
    assert [json.loads(line) for line in log.iterate_bad_row_lines()] == [
        {"file": "a.jsonl", "row": 1, "place": "line 1", "code": "not-json", "message": "坏", "excerpt": "x"},
        {"file": "a.jsonl", "row": 2, "place": "line 1", "code": "too-deep", "message": "坏", "excerpt": "x"},
    ]
    assert json.loads(json.dumps(report.to_json()))["left_out"] == {"not-adopted": 3}


def test_notices_are_bounded() -> None:
    log = IntakeLog()
    for number in range(MAX_NOTICES + 5):
        log.add_notice(Finding.info("x", str(number)))
    assert len(log.report().notices) == MAX_NOTICES
    assert log.report().num_notices == MAX_NOTICES + 5
