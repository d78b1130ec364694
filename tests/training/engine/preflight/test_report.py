import json

import pytest

from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.outcomes import failed, judge_part, passed, skipped, warned
from training.engine.preflight.report import (
    MAX_DOCUMENT_BYTES,
    CheckStatus,
    OverfitResult,
    PreflightReport,
    Segment,
    ShownRow,
    cut_middle,
)

ROW = HandbookRow.WRONG_DATA


def shown_row(name: str, length: int) -> ShownRow:
    segments = (Segment("p" * length, False), Segment("a" * length, True))
    return ShownRow(example_id=name, segments=segments, num_tokens=9, num_trained_tokens=4)


def test_only_a_failed_check_fails_the_report() -> None:
    calm = (passed("a", "fine"), skipped("b", "unknown"), warned("c", ROW, "look", remedy="do"))
    assert PreflightReport(checks=calm).passed
    report = PreflightReport(checks=(*calm, failed("d", ROW, "bad", remedy="mend it")))
    assert not report.passed
    (fault,) = report.faults
    assert (fault.code, fault.where, fault.remedy) == ("d", "handbook row wrong-data", "mend it")


@pytest.mark.parametrize(("num_all", "status"), [(100, CheckStatus.FAILED), (101, CheckStatus.WARNING)])
def test_one_example_in_a_hundred_is_the_border(num_all: int, status: CheckStatus) -> None:
    assert judge_part("a", ROW, "bad", remedy="", example_ids=["x"], num_all=num_all).status is status


def test_the_document_has_the_agreed_shape() -> None:
    overfit = OverfitResult(
        status="passed", num_examples=2, num_steps=1, losses=(2.0, 0.05), fingerprint="f" * 64
    )
    report = PreflightReport(
        checks=(failed("d", ROW, "bad", remedy="mend", example_ids=[f"e\x1b{i}" for i in range(9)]),),
        batches=((shown_row("e", 2),),),
        overfit=overfit,
    )
    assert report.to_json() == {
        "schema_version": 1,
        "passed": False,
        "checks": [
            {
                "code": "d",
                "status": "failed",
                "message": "bad",
                "row": "wrong-data",
                "remedy": "mend",
                "examples": [f"e\\x1b{i}" for i in range(5)],
            }
        ],
        "batches": [
            {
                "rows": [
                    {
                        "example_id": "e",
                        "segments": [{"text": "pp", "trained": False}, {"text": "aa", "trained": True}],
                        "num_tokens": 9,
                        "num_trained_tokens": 4,
                        "was_cut": False,
                    }
                ]
            }
        ],
        "overfit": {
            "status": "passed",
            "num_examples": 2,
            "num_steps": 1,
            "first_loss": 2.0,
            "last_loss": 0.05,
            "losses": [2.0, 0.05],
            "fingerprint": "f" * 64,
        },
        "first_step": None,
    }


def test_a_large_document_is_cut_and_says_so() -> None:
    batches = tuple(tuple(shown_row(f"{b}-{i}", 30_000) for i in range(16)) for b in range(20))
    document = PreflightReport(checks=(), batches=batches).to_json()
    assert len(json.dumps(document)) <= MAX_DOCUMENT_BYTES
    rows = [row for batch in document["batches"] for row in batch["rows"]]
    assert rows and all(row["was_cut"] for row in rows)
    small = PreflightReport(checks=(), batches=((shown_row("e", 100),),)).to_json()
    assert not small["batches"][0]["rows"][0]["was_cut"]


def test_a_text_is_cut_in_its_middle() -> None:
    text = "b" * 50 + "m" * 100 + "e" * 50
    cut = cut_middle(text, 60)
    assert len(cut) == 60
    assert cut.startswith("b") and cut.endswith("e") and "140 characters more" in cut
    assert cut_middle("abcdef", 6) == "abcdef"
    assert cut_middle("abcdef", 3) == "a…f"
