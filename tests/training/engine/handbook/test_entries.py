"""The handbook's texts: strict, whole, and the same rows in both languages."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import training.engine.handbook as handbook
from training.engine.handbook.entries import HandbookInvalid, parse_handbook, read_handbook
from training.engine.handbook.lookup import get_rows, get_treatment
from training.engine.handbook.rows import CLASSES, HandbookRow, SymptomClass
from training.engine.lint.catalogue import RULES as LINT_RULES
from training.engine.monitor.catalogue import REPORTED_CODES, RULES
from training.engine.monitor.outputs import OUTPUT_RULES

FOLDER = Path(handbook.__file__).parent


def load(language: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return document


def test_both_languages_hold_every_row_in_the_same_order_with_the_same_codes() -> None:
    english, chinese = read_handbook("en"), read_handbook("zh")
    assert [entry.code for entry in english] == [entry.code for entry in chinese] == list(HandbookRow)
    for one, other in zip(english, chinese, strict=True):
        assert one.detectors == other.detectors
        assert (len(one.causes), len(one.treatment)) == (len(other.causes), len(other.treatment))
        assert one.symptom_class is CLASSES[one.code]


def test_the_ten_rows_of_the_handbook_come_first() -> None:
    assert [row.value for row in list(HandbookRow)[:10]] == [
        "loss-flat", "loss-near-zero", "loss-oscillates", "loss-not-finite", "out-of-memory-at-start",
        "out-of-memory-later", "never-stops", "template-tokens-in-output", "forgetting", "worse-after-merge",
    ]  # fmt: skip
    assert list(SymptomClass)[:2] == [SymptomClass.RESOURCE, SymptomClass.NUMERIC]


def test_detectors_are_codes_that_exist_and_every_rule_has_a_row() -> None:
    named = {code for entry in read_handbook("en") for code in entry.detectors}
    monitor = {code for rule in RULES for code in rule.codes} | set(REPORTED_CODES)
    outputs = {rule.code for rule in OUTPUT_RULES}
    lint = {f"lint/{rule.code}" for rule in LINT_RULES}
    assert {code for code in named if code.startswith("monitor/")} == monitor
    assert {code for code in named if code.startswith("evaluation/")} == outputs
    assert {code for code in named if code.startswith("lint/")} <= lint


def test_looking_up() -> None:
    assert get_rows("chat/end-token-missing") == (HandbookRow.NEVER_STOPS,)
    assert get_rows("chat/no-such-code") == ()
    assert get_treatment(HandbookRow.LOSS_FLAT).startswith("Raise the learning rate tenfold")
    assert get_treatment(HandbookRow.LOSS_FLAT, 1).startswith("Decode a batch")


def test_all_faults_come_at_once() -> None:
    document = copy.deepcopy(load("en"))
    document["language"] = "zh"
    rows = document["rows"]
    rows[0]["class"] = "resource"
    rows[1]["treatment"] = []
    rows[2]["extra"] = 1
    rows[3]["symptom"] = " "
    rows[4] = dict(rows[5])
    rows.append("no row")
    with pytest.raises(HandbookInvalid) as caught:
        parse_handbook(document, "en")
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [
        ("wrong-header", "language"),
        ("wrong-class", "rows[0].class"),
        ("texts-missing", "rows[1].treatment"),
        ("unknown-key", "rows[2].extra"),
        ("text-missing", "rows[3].symptom"),
        ("row-doubled", "rows[5]"),
        ("row-invalid", "rows[25]"),
        ("row-missing", "rows"),
    ]


@pytest.mark.parametrize("rows", [None, {}, "x"])
def test_rows_that_are_no_list(rows: Any) -> None:
    with pytest.raises(HandbookInvalid, match="must be a list"):
        parse_handbook({"schema_version": 1, "language": "en", "rows": rows}, "en")


def test_another_language_is_refused() -> None:
    with pytest.raises(ValueError, match="en, zh"):
        read_handbook("de")
