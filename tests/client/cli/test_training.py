"""`assay train run|mini|show|list|vary|compare` against a server that keeps to the contract."""

import json
from pathlib import Path
from typing import Any

import pytest

from client.reports.training import sparkline
from tests.client.cli.conftest import Assay
from tests.client.fake_server import FakeServer

HOSTILE = "\x1b[2J[red]evil[/red]\u202e"
LINT = {
    "findings": [
        {
            "code": "few-rows",
            "severity": "warning",
            "message": "3 rows.",
            "where": "training data",
            "remedy": "Collect more data.",
            "source": "MISSION D6",
        }
    ],
    "unchecked": [],
    "is_overridden": False,
}
PREFLIGHT = {
    "passed": False,
    "checks": [
        {
            "code": "answer-end-trained",
            "status": "failed",
            "message": f"The end is not in the loss {HOSTILE}",
            "row": "never-stops",
            "remedy": "Repair the template.",
        },
        {"code": "first-batches", "status": "passed", "message": "3 batches.", "row": None},
    ],
}
FINDING = {
    "code": "held-out-rises",
    "row": "held-out-rises",
    "severity": "error",
    "step": 120,
    "message": f"The held-out loss rose three times {HOSTILE}",
    "treatment": "Stop earlier.",
}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "id": "t1",
        "name": "tickets",
        "state": "succeeded",
        "purpose": "training",
        "verdict": None,
        "lint": LINT,
        "findings": [],
        "created_at": "2030-01-02T03:04:05Z",
        **changes,
    }


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "quick.json"
    path.write_text('{"lora": {"r": 8}}')
    return path


def test_a_preflight_that_fails_ends_with_1_and_names_the_row(
    fake: FakeServer, assay: Assay, config: Path
) -> None:
    fake.run_states = [
        document(state="queued", purpose="preflight"),
        document(purpose="preflight", verdict="failed"),
    ]
    fake.training_documents = {"preflight": PREFLIGHT}
    result = assay("train", "run", str(config), "--dataset", "a@1", "--preflight-only", "--note", "try")
    assert result.exit_code == 1, result.output
    assert "preflight failed" in result.stdout
    assert "warning few-rows (training data): 3 rows." in result.stderr
    assert "error answer-end-trained (handbook: never-stops)" in result.stderr
    assert "\x1b[2J" not in result.output and "\u202e" not in result.output
    body = fake.sent("POST", "/training-runs")[0].json
    assert (body["purpose"], body["note"], "allow_lint_errors" in body) == ("preflight", "try", False)


def test_mini_tells_its_verdict(fake: FakeServer, assay: Assay, config: Path) -> None:
    fake.run_states = [document(purpose="mini", verdict="passed")]
    result = assay("train", "mini", str(config), "--dataset", "a@1", "--allow-lint-errors")
    assert result.exit_code == 0, result.output
    assert "training run t1: succeeded, mini passed" in result.stdout
    body = fake.sent("POST", "/training-runs")[0].json
    assert (body["purpose"], body["allow_lint_errors"]) == ("mini", True)


def test_a_failure_names_the_handbook(fake: FakeServer, assay: Assay) -> None:
    failure = {
        "failure_class": "user",
        "code": "loss-not-finite",
        "message": "The loss is not finite.",
        "details": [],
        "rows": ["loss-not-finite"],
    }
    fake.run_states = [document(state="failed", failure=failure)]
    result = assay("train", "show", "t1")
    assert result.exit_code == 3
    assert "The loss is not finite. Handbook: loss-not-finite." in result.stderr


def test_show(fake: FakeServer, assay: Assay) -> None:
    fake.run_states = [document(findings=[FINDING], note="second try")]
    fake.training_documents = {"preflight": PREFLIGHT, "not_finite": {"step": 1}}
    fake.training_curves = {"loss": [{"step": step, "value": 4.0 - step} for step in range(1, 4)]}
    result = assay("train", "show", "t1")
    assert result.exit_code == 0, result.output
    assert "answer-end-trained (never-stops)" in result.stdout
    assert "note: second try" in result.stdout
    line = next(line for line in result.stdout.splitlines() if line.startswith("loss"))
    assert line.split() == ["loss", "3", "1", "1", "3", "█▅▁"]
    assert "error held-out-rises (step 120): The held-out loss rose" in result.stderr
    assert "-> Stop earlier." in result.stderr
    assert "\x1b[2J" not in result.output and "\u202e" not in result.output
    assert json.loads(assay("train", "show", "t1", "--json").stdout)["id"] == "t1"


def test_list(fake: FakeServer, assay: Assay) -> None:
    fake.run_states = [document(findings=[FINDING], purpose="mini", verdict="failed")]
    result = assay("train", "list", "--purpose", "mini", "--state", "succeeded")
    assert "succeeded: failed" in result.stdout and "held-out-rises" in result.stdout
    request = fake.sent("GET", "/training-runs")[0]
    assert (request.query["purpose"], request.query["state"]) == ("mini", "succeeded")
    assert json.loads(assay("train", "list", "--json").stdout)[0]["id"] == "t1"


def test_vary(fake: FakeServer, assay: Assay) -> None:
    fake.run_states = [document(name="tickets-lower-rate", note="The learning rate goes down.")]
    result = assay("train", "vary", "t0", "--remedy", "lower-rate")
    assert result.exit_code == 0, result.output
    assert "tickets-lower-rate: The learning rate goes down." in result.stderr
    (request,) = fake.sent("POST", "/training-runs/t0/variations")
    assert request.json == {"remedy": "lower-rate"}
    assay("train", "vary", "t0", "--remedy", "more-general-data", "--general-dataset", "chat@1", "--no-wait")
    assert fake.sent("POST", "/training-runs/t0/variations")[1].json["general_dataset"] == "chat@1"


def test_compare(fake: FakeServer, assay: Assay) -> None:
    fake.comparison = {
        "runs": [
            {"id": "a", "name": "tickets", "state": "succeeded", "remedy": ""},
            {"id": "b", "name": f"tickets-lower-rate{HOSTILE}", "state": "running", "remedy": "lower-rate"},
        ],
        "differences": [{"name": "training.learning_rate", "values": [0.0002, 0.0001]}],
        "measures": [{"name": "held-out loss", "values": [0.81234, None]}],
        "verdicts": [],
        "findings": [["held-out-rises"], []],
    }
    result = assay("train", "compare", "a")
    assert result.exit_code == 0, result.output
    lines = {line.split("  ")[0].strip(): line for line in result.stdout.splitlines()}
    assert "0.0002" in lines["differs in: training.learning_rate"]
    assert lines["measured: held-out loss"].split()[-2:] == ["0.8123", "-"]
    assert "held-out-rises" in lines["found: findings"]
    assert "\x1b[2J" not in result.output and "\u202e" not in result.output


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([1.0, 1.0], "▁▁"),
        ([0.0, 7.0], "▁█"),
        # 80 points on 40 bars: each the mean of two.
        ([float(number // 2) for number in range(80)], None),
    ],
)
def test_sparklines(values: list[float], line: str | None) -> None:
    drawn = sparkline(values)
    if line is None:
        assert len(drawn) == 40
        assert (drawn[0], drawn[-1], sorted(drawn)) == ("▁", "█", list(drawn))
    else:
        assert drawn == line
