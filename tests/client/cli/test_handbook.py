import json
from typing import Any

import pytest

from tests.client import fake_server
from tests.client.cli.conftest import Assay
from tests.client.fake_server import Answer, FakeServer, Request

ROW = {
    "code": "loss-flat",
    "symptom_class": "not-converging",
    "position": 10,
    "origin": "shipped",
    "language": "zh",
    "symptom": "loss 纹丝不动 \x1b[31m",
    "causes": ["lr 过小", "模板错"],
    "treatment": ["lr 升 10 倍", "decode 查数据"],
    "source": "Handbook, row 1",
    "detectors": ["monitor/loss-flat"],
    "is_edited": True,
    "edited_by": "anna",
    "edited_at": "2026-12-01T00:00:00Z",
    "num_incidents": 3,
}


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def list_rows(fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer({"next": None, "previous": None, "results": [ROW]})

    def get_row(fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer(ROW)

    routes: list[Any] = [("GET", "handbook", list_rows), ("GET", "handbook/([^/]+)", get_row)]
    monkeypatch.setattr(fake_server, "_ROUTES", [*fake_server._ROUTES, *routes])


@pytest.mark.usefixtures("rows")
def test_all_rows_and_one(fake: FakeServer, assay: Assay) -> None:
    result = assay("handbook", "--language", "zh")
    assert result.exit_code == 0, result.output
    assert "loss-flat" in result.stdout and "lr 升 10 倍" in result.stdout and "模板错" not in result.stdout
    assert fake.sent("GET", "/handbook")[-1].query == {"language": "zh"}
    # What a person has written does not act on the terminal.
    assert "\x1b" not in result.stdout and "\\x1b[31m" in result.stdout

    result = assay("handbook", "loss-flat", "--language", "zh")
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert "1. lr 升 10 倍" in lines and "2. decode 查数据" in lines and "- 模板错" in lines
    assert "written by people of this server" in lines and "recognised by: monitor/loss-flat" in lines


@pytest.mark.usefixtures("rows")
def test_json(assay: Assay) -> None:
    assert json.loads(assay("handbook", "--json").stdout) == [ROW]
    assert json.loads(assay("handbook", "loss-flat", "--json").stdout) == ROW


def test_another_language(fake: FakeServer, assay: Assay) -> None:
    result = assay("handbook", "--language", "fr")
    assert result.exit_code == 3 and "language-unknown" in result.stderr
    assert fake.requests == []
