import json
from typing import Any

import pytest

from training.engine.data.intake.settings import IntakeLimits, IntakeSettings, RowFilter
from training.engine.errors import ConfigInvalid

FULL: dict[str, Any] = {
    "format": "csv",
    "encoding": "gb18030",
    "shape": "columns",
    "columns": {"input": "问题", "answer": "答案", "group": "customer"},
    "keep": ["channel"],
    "tags": {"城市": "city"},
    "adoption": {"column": "adopted", "values": [True, "yes", 1]},
    "rework": {"column": "reworked", "values": ["true"]},
    "reference_source": "person",
    "confirmed_by": "Li Wei",
    "system_prompt": "Answer.",
    "needs_answer": True,
    "splits": ["train"],
    "delimiter": "tab",
    "column_names": ["问题", "答案"],
    "limits": {"max_rows": 7},
}


def faults_of(raw: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ConfigInvalid) as caught:
        IntakeSettings.from_json(raw)
    assert caught.value.code == "intake-settings-invalid"
    return {fault.where: fault.code for fault in caught.value.faults}


def test_settings_survive_json() -> None:
    settings = IntakeSettings.from_json(FULL)
    assert IntakeSettings.from_json(settings.to_json()) == settings
    assert IntakeSettings.from_json(IntakeSettings().to_json()) == IntakeSettings()
    assert settings.adoption == RowFilter(column="adopted", values=("true", "yes", "1"))
    assert settings.limits == IntakeLimits(max_rows=7)
    assert settings.mapped_columns == {"问题", "答案", "customer", "city", "adopted", "reworked"}


def test_a_list_of_tags_names_columns_and_tags_at_once() -> None:
    assert IntakeSettings.from_json({"tags": ["channel", "city"]}).tags == {
        "channel": "channel",
        "city": "city",
    }


def test_every_fault_at_once() -> None:
    found = faults_of(
        {
            "fromat": "csv",
            "encoding": "latin",
            "shape": "chatml",
            "columns": {"input": 3, "inputs": "x"},
            "adoption": {"column": "a"},
            "rework": {"values": [], "column": ""},
            "reference_source": "guess",
            "tags": ["a", "a"],
            "limits": {"max_rows": 0, "max_json_depth": 1000},
        }
    )
    assert found == {
        "intake.fromat": "unknown-key",
        "intake.encoding": "invalid-value",
        "intake.shape": "invalid-value",
        "intake.columns.input": "invalid-value",
        "intake.columns.inputs": "unknown-key",
        "intake.adoption.values": "missing-key",
        "intake.rework.values": "invalid-value",
        "intake.rework.column": "invalid-value",
        "intake.reference_source": "invalid-value",
        "intake.tags": "invalid-value",
        "intake.limits.max_rows": "invalid-value",
        "intake.limits.max_json_depth": "invalid-value",
    }


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ({"columns": {"text": "input"}}, "columns-turned-round"),
        ({"columns": {"answer": "label"}}, "columns-missing"),
        ({"shape": "columns", "columns": {"id": "uid"}}, "columns-missing"),
        ({"columns": {"input": "a", "messages": "b"}}, "columns-contradict"),
        ({"shape": "alpaca", "columns": {"input": "a"}}, "columns-contradict"),
        ({"keep": ["messages"]}, "keep-reserved"),
    ],
)
def test_contradictions(raw: dict[str, Any], code: str) -> None:
    assert code in faults_of(raw).values()


def test_columns_turned_round_says_how_to_write_it() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        IntakeSettings.from_json({"columns": {"text": "input"}})
    assert caught.value.faults[0].remedy == 'Write the meaning first: {"input": "text"}.'


@pytest.mark.parametrize(
    ("cell", "is_match"),
    [
        ("Yes ", True),
        (True, True),
        (1, True),
        ("已采纳", True),
        (None, False),
        ("no", False),
        (["yes"], False),
    ],
)
def test_filter_compares_as_text(cell: Any, is_match: bool) -> None:
    chosen = RowFilter(column="adopted", values=("yes", "true", "1", "已采纳"))
    assert chosen.matches({"adopted": cell}) is is_match
    assert not chosen.matches({})


def test_the_order_in_which_columns_and_tags_were_written_does_not_matter() -> None:
    one = {"columns": {"input": "a", "answer": "b"}, "tags": {"lang": "x", "channel": "y"}}
    other = {"columns": {"answer": "b", "input": "a"}, "tags": {"channel": "y", "lang": "x"}}
    first, second = (json.dumps(IntakeSettings.from_json(raw).to_json()) for raw in (one, other))
    assert first == second
