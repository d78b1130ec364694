import json
from pathlib import Path
from typing import Any

import pytest

from tests.client import fake_server
from tests.client.cli.conftest import Assay
from tests.client.fake_server import Answer, FakeServer, Request

SHARE = {
    "treatment": "fine-tune",
    "num_failures": 2,
    "fraction": 1.0,
    "reason": "The model knows the content.",
    "kinds": {"format": 2},
}


def item(position: int, outcome: str, kind: str, message: str = "") -> dict[str, Any]:
    signals = [{"kind": kind, "message": message}] if message else []
    return {
        "position": position,
        "sample_id": f"ticket-{position}",
        "outcome": outcome,
        "rule_kind": kind,
        "confidence": 0.95,
        "confirmed_kind": "",
        "etag": "r0",
        "details": {"sorting": {"signals": signals}},
    }


def document(state: str) -> dict[str, Any]:
    is_sorted = state in ("sorted", "closed")
    job = {"id": "j", "kind": "triage", "state": "running", "fraction": 0.2, "message": "asking"}
    return {
        "id": "t1",
        "state": state,
        "current_job": None if is_sorted or state == "failed" else job,
        "failure": {"failure_class": "user", "code": "prompt-too-long", "message": "Too long.", "details": []}
        if state == "failed"
        else None,
        "artifact": None,
        "links": {"page": "http://host/admin/evaluation/triage/t1/report/"},
        "summary": {
            "best_prompt": "short",
            "prompts": [
                {"name": "short", "num_passed": 10, "num_failed": 2, "num_unjudged": 0, "mean_score": 0.9},
                {"name": "long", "num_passed": 1, "num_failed": 11, "num_unjudged": 0, "mean_score": None},
            ],
            "warnings": [{"message": "write about 20"}],
        }
        if is_sorted
        else None,
        "verdict": {
            "advice": "fine-tune",
            "is_preliminary": state == "sorted",
            "summary": "2 of 12 samples failed.",
            "shares": [SHARE],
        }
        if is_sorted
        else None,
    }


class Server:
    """Answers of the triage addresses; the states are those of successive looks, the last one stays."""

    def __init__(self, *states: str) -> None:
        self.states = list(states)
        self.items = [
            item(1, "failed", "format", "\x1b[31mwords before the JSON"),
            item(2, "passed", ""),
            item(3, "failed", "format", "no JSON"),
        ]

    def look(self, fake: FakeServer, request: Request, *_: str) -> Answer:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return Answer(document(state), 201 if request.method == "POST" else 200)

    def list(self, fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer({"next": None, "previous": None, "results": self.items})

    def put(self, fake: FakeServer, request: Request, *_: str) -> Answer:
        return Answer(self.items[0])


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Any:
    def start(*states: str) -> Server:
        server = Server(*states)
        routes = [
            ("POST", "triages", server.look),
            ("GET", "triages/([^/]+)", server.look),
            ("GET", "triages/([^/]+)/items", server.list),
            ("PUT", "triages/([^/]+)/items/([0-9]+)", server.put),
            ("POST", "triages/([^/]+)/close", server.look),
        ]
        monkeypatch.setattr(fake_server, "_ROUTES", [*fake_server._ROUTES, *routes])
        return server

    return start


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    samples, text, shots = tmp_path / "tickets.jsonl", tmp_path / "short.txt", tmp_path / "long.json"
    samples.write_text('{"id": "a"}\n\n{"id": "b"}\n')
    text.write_text("Answer in JSON.\n")
    shots.write_text(json.dumps({"system_prompt": "Answer.", "few_shot": [{"user": "1", "assistant": "2"}]}))
    return str(samples), str(text), str(shots)


def test_run_waits_and_shows_failures_and_verdict(
    fake: FakeServer, assay: Assay, serve: Any, files: tuple[str, str, str]
) -> None:
    serve("queued", "running", "sorted")
    result = assay("triage", files[0], "--prompt", files[1], "--prompt", files[2])
    assert result.exit_code == 0, result.output
    (sent,) = fake.sent("POST", "/triages")
    assert sent.json == {
        "name": "tickets",
        "base_model": "tiny",
        "samples": [{"id": "a"}, {"id": "b"}],
        "prompts": [
            {"name": "short", "system_prompt": "Answer in JSON."},
            {"name": "long", "system_prompt": "Answer.", "few_shot": [{"user": "1", "assistant": "2"}]},
        ],
        "max_tokens": 512,
    }
    assert "preliminary verdict: fine-tune" in result.stdout and "fine-tune: 2 (100 %)" in result.stdout
    assert "ticket-1" in result.stdout and "ticket-2" not in result.stdout
    assert "\x1b" not in result.stdout
    assert "write about 20" in result.stderr and "/admin/evaluation/triage/t1/report/" in result.stderr


def test_show_as_json_and_a_failed_one(assay: Assay, serve: Any) -> None:
    server = serve("sorted")
    shown = assay("triage", "show", "t1", "--json")
    assert shown.exit_code == 0 and json.loads(shown.stdout)["verdict"]["advice"] == "fine-tune"
    server.states = ["failed"]
    failed = assay("triage", "show", "t1")
    assert failed.exit_code == 3 and "prompt-too-long" in failed.stderr


@pytest.mark.parametrize("wanted", ["3", "ticket-3"])
def test_confirm_sends_what_was_seen(fake: FakeServer, assay: Assay, serve: Any, wanted: str) -> None:
    serve("sorted")
    result = assay("triage", "confirm", "t1", wanted, "--class", "style", "--note", "too long")
    assert result.exit_code == 0, result.output
    (sent,) = fake.sent("PUT", "/triages/t1/items/3")
    assert (sent.json, sent.headers["If-Match"]) == ({"kind": "style", "note": "too long"}, '"r0"')
    assert "3 ticket-3: style" in result.stdout


def test_confirm_refuses_what_it_does_not_know(fake: FakeServer, assay: Assay, serve: Any) -> None:
    serve("sorted")
    assert "unknown-fact" in assay("triage", "confirm", "t1", "1", "--class", "magic").stderr
    assert "no sample '9'" in assay("triage", "confirm", "t1", "9", "--class", "style").stderr
    assert fake.sent("PUT", "/triages/t1/items/1") == []


def test_close(fake: FakeServer, assay: Assay, serve: Any) -> None:
    serve("closed")
    result = assay("triage", "close", "t1", "--allow-unconfirmed")
    assert result.exit_code == 0 and "verdict: fine-tune" in result.stdout
    assert fake.sent("POST", "/triages/t1/close")[0].json == {"allow_unconfirmed": True}


def test_broken_lines_are_named_before_anything_is_sent(
    fake: FakeServer, assay: Assay, serve: Any, tmp_path: Path
) -> None:
    serve("sorted")
    bad, prompt = tmp_path / "bad.jsonl", tmp_path / "p.txt"
    bad.write_text('{"id": 1}\nnot json\n{\n')
    prompt.write_bytes(b"\xff\xfe")
    result = assay("triage", str(bad), "--prompt", str(prompt), "--base", "tiny")
    assert result.exit_code == 3
    assert "bad.jsonl line 2" in result.stderr and "bad.jsonl line 3" in result.stderr
    bad.write_text("{}\n")
    assert "not UTF-8" in assay("triage", str(bad), "--prompt", str(prompt)).stderr
    assert fake.sent("POST", "/triages") == []
