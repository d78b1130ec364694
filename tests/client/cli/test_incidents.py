import json
from pathlib import Path
from typing import Any

import pytest

from tests.client import fake_server
from tests.client.cli.conftest import Assay
from tests.client.fake_server import Answer, FakeServer, Request

QUESTION = (
    "This symptom occurred twice within 180 days: make it a check (lint rule, preflight check, policy rule)."
)
MARKDOWN = "# Incidents of 2026Q4\n\n| a |\n"


def document(**changes: Any) -> dict[str, Any]:
    return {
        "number": 7,
        "title": "flat \x1b[31m",
        "symptom": "loss-flat",
        "state": "open",
        "opened_by": "diagnosis",
        "created_by": None,
        "training_run": "r1",
        "evaluation_run": "",
        "first_step": 50,
        "fingerprint": "f" * 64,
        "found": "monitor/loss-flat: flat",
        "cause": "",
        "fix": "",
        "opened_at": "2026-12-01T10:20:30Z",
        "closed_at": None,
        "asks_for_check": True,
        "check_answer": "",
        "check_text": "",
        "check_by": None,
        "check_at": None,
        "check_question": QUESTION,
        "etag": "r4",
        "links": {"page": "http://host/admin/training/incident/7/page/"},
    } | changes


ENTRY = {
    "id": 1,
    "at": "2026-12-01T10:21:00Z",
    "actor": "anna",
    "kind": "step",
    "detector": "",
    "text": "Decoded \x1b[2J",
}


@pytest.fixture(autouse=True)
def register(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer(document())

    def open_one(fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer(document(**request.json, asks_for_check=False), 201)

    def listed(fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer(
            {"next": None, "previous": None, "results": [document(), document(number=6, symptom=None)]}
        )

    def entries(fake: FakeServer, request: Request, *_: str) -> Answer:
        if request.method == "POST":
            return Answer(ENTRY, 201)
        return Answer({"next": None, "previous": None, "results": [ENTRY]})

    def change(fake: FakeServer, request: Request, number: str, action: str) -> Answer:
        return Answer(document(state={"resolve": "resolved", "dismiss": "dismissed"}.get(action, "open")))

    def quarterly(fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer({"quarter": request.query.get("quarter", "now")})

    def report(fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer(MARKDOWN.encode(), headers={"Content-Type": "text/markdown"})

    routes: list[Any] = [
        ("POST", "incidents", open_one),
        ("GET", "incidents", listed),
        ("GET", "incidents/quarterly", quarterly),
        ("GET", "incidents/quarterly/report", report),
        ("GET", "incidents/([0-9]+)", get),
        ("GET", "incidents/([0-9]+)/entries", entries),
        ("POST", "incidents/([0-9]+)/entries", entries),
        ("POST", "incidents/([0-9]+)/(investigate|resolve|dismiss|check)", change),
    ]
    monkeypatch.setattr(fake_server, "_ROUTES", [*fake_server._ROUTES, *routes])


def test_open(fake: FakeServer, assay: Assay) -> None:
    result = assay("incident", "open", "Odd", "--symptom", "loss-flat", "--run", "r1", "--step", "3")
    assert result.exit_code == 0, result.output
    (sent,) = fake.sent("POST", "/incidents")
    assert sent.json == {
        "title": "Odd", "symptom": "loss-flat", "training_run": "r1", "evaluation_run": "", "first_step": 3,
        "found": "",
    }  # fmt: skip
    assert "#7 open: Odd" in result.stdout and "page: http://host/" in result.stderr


def test_list(fake: FakeServer, assay: Assay) -> None:
    result = assay("incident", "list", "--state", "open", "--asks-for-check")
    assert fake.sent("GET", "/incidents")[-1].query == {"state": "open", "asks_for_check": "true"}
    assert result.stdout.count("asks for a check") == 2 and "\x1b" not in result.stdout
    assert len(json.loads(assay("incident", "list", "--limit", "1", "--json").stdout)) == 1


def test_show(assay: Assay) -> None:
    result = assay("incident", "show", "7")
    assert "first step: 50" in result.stdout and "anna step: Decoded \\x1b[2J" in result.stdout
    assert "make it a check" in result.stderr
    assert json.loads(assay("incident", "show", "7", "--json").stdout) == document()


def test_note(fake: FakeServer, assay: Assay) -> None:
    assert assay("incident", "note", "7", "Decoded.").exit_code == 0
    assert fake.sent("POST", "/entries")[-1].json == {"text": "Decoded."}


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (("investigate", "7"), {}),
        (("resolve", "7", "--cause", "Mask.", "--fix", "Mended."), {"cause": "Mask.", "fix": "Mended."}),
        (("dismiss", "7", "--reason", "A test."), {"reason": "A test."}),
        (("check", "7", "--made", "lint/x"), {"answer": "made", "text": "lint/x"}),
        (("check", "7", "--declined", "Rare."), {"answer": "declined", "text": "Rare."}),
    ],
)
def test_a_change_names_what_was_seen(
    fake: FakeServer, assay: Assay, arguments: tuple[str, ...], body: dict[str, str]
) -> None:
    result = assay("incident", *arguments)
    assert result.exit_code == 0, result.output
    sent = fake.sent("POST", f"/{arguments[0]}")[-1]
    assert (sent.json, sent.headers["If-Match"]) == (body, '"r4"')


def test_a_check_needs_one_answer(fake: FakeServer, assay: Assay) -> None:
    for arguments in ((), ("--made", "x", "--declined", "y")):
        assert assay("incident", "check", "7", *arguments).exit_code == 3
    assert fake.requests == []


def test_report(assay: Assay, tmp_path: Path) -> None:
    assert assay("incident", "report", "--quarter", "2026Q4").stdout == MARKDOWN
    target = tmp_path / "review.md"
    result = assay("incident", "report", "--output-file", str(target))
    assert (target.read_text(), result.stdout) == (MARKDOWN, "")
    assert json.loads(assay("incident", "report", "--quarter", "2026Q4", "--json").stdout) == {
        "quarter": "2026Q4"
    }
    assert assay("incident", "report", "--output-file", str(tmp_path)).exit_code == 3
