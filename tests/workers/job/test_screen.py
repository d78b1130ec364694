import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.fixtures.models import random_llama, smollm2_tokenizer
from tests.workers.job.text_generators.scripted import ScriptedBackend
from workers.job import model_programs, screen

END = ScriptedBackend.END
SECRETS = ("Maria Gomez", "王芳", "+49 30 901820", "Ann Lee")
TEXTS = {
    "a": "I am Maria Gomez, call +49 30 901820.",
    "b": "The app is slow.",
    "c": "我叫王芳",
    "d": "It is Ann Lee who is ill.",
    "e": "Nobody knows.",
}
REPLIES = {
    "Maria": '[{"text": "Maria Gomez", "kind": "person-name"}]',
    "slow": "[]",
    "王芳": '[{"text": "王芳", "kind": "person-name"}]',
    "Ann": '[{"text": "Ann Lee", "kind": "person-name"}, {"text": "is ill", "kind": "health"}]',
    "Nobody": "I found nothing.",
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def answer(prompt: str) -> str:
        text = prompt.rpartition("<|im_start|>user")[2]
        return next((reply for asked, reply in REPLIES.items() if asked in text), "[]") + END

    monkeypatch.setattr(
        model_programs, "ProcessBackend", lambda *_, **__: ScriptedBackend(smollm2_tokenizer(), answer)
    )
    path = tmp_path / "set.jsonl"
    lines = [
        {"id": key, "messages": [{"role": "user", "content": text}], "tags": {"who": "Ann Lee"}}
        for key, text in TEXTS.items()
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "settings.json").write_text('{"screen": {"actions": {"health": "drop"}}}')
    return path


def run(data: Path, *arguments: str) -> Result:
    options = ["--model", str(random_llama()), "--settings", str(data.parent / "settings.json")]
    return CliRunner().invoke(screen.app, [str(data), *options, *arguments])


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rules_and_model_decide_together_and_reports_tell_no_secret(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(data, "--out", str(out))
    assert result.exit_code == 1, result.output  # one part has no usable reply
    kept = {line["id"]: line["messages"][0]["content"] for line in lines_of(out / "screened.jsonl")}
    assert kept == {
        "a": "I am [NAME_1], call [PHONE_1].",
        "b": "The app is slow.",
        "c": "我叫[NAME_1]",
        "e": "Nobody knows.",
    }
    assert lines_of(out / "screened.jsonl")[1]["tags"] == {"who": "Ann Lee"}
    (dropped,) = lines_of(out / "dropped.jsonl")
    assert (dropped["example"]["id"], dropped["reasons"]) == ("d", ["health-dropped"])
    assert {line["example"]["id"]: line["reasons"] for line in lines_of(out / "marked.jsonl")} == {
        "a": ["person-name-redacted", "phone-redacted"],
        "c": ["person-name-redacted"],
        "e": ["model-unanswered"],
    }
    told = [(out / name).read_text() for name in ("dropped.jsonl", "marked.jsonl", "report.json")]
    assert not [secret for secret in SECRETS for text in (*told, result.output) if secret in text]
    report = json.loads((out / "report.json").read_text())
    assert report["step"]["facts"]["num_found"] == {"health": 1, "person-name": 3}
    assert (report["step"]["num_in"], report["step"]["num_dropped"]) == (5, 1)
    assert report["engine"]["num_prompts"] == 5
    assert str(tmp_path) not in json.dumps(report)


def test_a_set_that_is_answered_throughout_ends_with_0(data: Path, tmp_path: Path) -> None:
    data.write_text("\n".join(data.read_text().splitlines()[:2]))
    result = run(data, "--out", str(tmp_path / "out"), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["examples"]["num_examples"] == 2


def test_what_cannot_be_read_leaves_nothing(data: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    for content, code in (("{broken\n", "jsonl-invalid"), ("", "no-inputs")):
        data.write_text(content)
        result = run(data, "--out", str(tmp_path / "out"))
        assert (result.exit_code, code in result.stderr) == (3, True)
    assert set(tmp_path.iterdir()) == before
