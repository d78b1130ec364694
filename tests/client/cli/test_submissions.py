import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.client.cli.conftest import Assay
from tests.client.documents import decided, rule, submission_document
from tests.client.fake_server import DropConnection, FakeServer, Refusal, Request

ID = "6f1d4d0e-8a5c-4f5a-9d55-0a4c5f2d1e01"


@pytest.mark.parametrize(
    ("final", "code", "word"),
    [
        (decided("passed", rule("ood_ratio", "passed")), 0, "PASSED"),
        (decided("rejected", rule("ood_ratio", "failed")), 1, "REJECTED"),
        (decided("inconclusive", rule("evidence", "inconclusive")), 2, "INCONCLUSIVE"),
        (submission_document(state="invalid", is_final=True), 3, "INVALID"),
        (submission_document(state="failed", is_final=True), 3, "FAILED"),
        (submission_document(state="cancelled", is_final=True), 3, "CANCELLED"),
    ],
)
def test_submit_and_wait_ends_with_the_verdicts_code(
    fake: FakeServer, assay: Assay, adapter_folder: Path, final: dict[str, object], code: int, word: str
) -> None:
    job = {"id": "j", "kind": "merge", "state": "running", "fraction": 0.5, "message": "layer 3"}
    fake.submission_states = [submission_document(state="checked", current_job=job), final]
    result = assay(
        "submit", str(adapter_folder), "--adapter", "tickets", "--suite", "tickets", "--wait",
        "--training-dataset", "a@1", "--training-dataset", "b@2", "--policy", "strict", "--notes", "try",
    )  # fmt: skip
    assert result.exit_code == code, result.output
    assert result.stdout.startswith(word)
    assert "left out: optimizer.pt" in result.stderr
    assert "checked: merge running 50 % layer 3" in result.stderr
    sent = fake.sent("POST", "/submissions")[0].json
    assert sent.pop("artifact") in fake.artifacts
    assert sent == {
        "adapter": "tickets",
        "base_model": "tiny",
        "suite": "tickets",
        "policy": "strict",
        "training_dataset": ["a@1", "b@2"],
        "notes": "try",
    }


def test_only_the_adapters_files_are_uploaded(fake: FakeServer, assay: Assay, adapter_folder: Path) -> None:
    assay("submit", str(adapter_folder), "--adapter", "tickets", "--suite", "tickets")
    paths = [file["path"] for file in fake.sent("POST", "/uploads")[0].json["files"]]
    assert paths == ["adapter_config.json", "adapter_model.safetensors"]


def test_without_wait_only_the_id_is_on_stdout(assay: Assay, adapter_folder: Path) -> None:
    result = assay("submit", str(adapter_folder), "--adapter", "tickets", "--suite", "tickets")
    assert (result.exit_code, result.stdout) == (0, f"{ID}\n")
    assert f"assay wait {ID}" in result.stderr


def test_json_output_is_the_servers_document_and_nothing_else(
    fake: FakeServer, assay: Assay, adapter_folder: Path
) -> None:
    result = assay(
        "submit", str(adapter_folder), "--adapter", "tickets", "--suite", "tickets", "--wait", "-o", "json"
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout) == fake.submission_states[0]


def test_junit_goes_into_a_file_and_text_to_stdout(
    assay: Assay, adapter_folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out" / "report.xml"
    result = assay(
        "submit", str(adapter_folder), "--adapter", "tickets", "--suite", "tickets", "--wait",
        "--output", "junit", "--output-file", str(target),
    )  # fmt: skip
    assert result.exit_code == 0
    assert result.stdout.startswith("PASSED")
    suite = ET.parse(target).getroot().find("testsuite")  # noqa: S314 - our own document
    assert suite is not None
    assert suite.get("tests") == "1"


def test_markdown_on_stdout(fake: FakeServer, assay: Assay) -> None:
    result = assay("report", ID, "--output", "markdown")
    assert result.exit_code == 0
    assert result.stdout.startswith("## Assay: passed\n")


def test_an_output_file_needs_a_form(assay: Assay, adapter_folder: Path, tmp_path: Path) -> None:
    result = assay("report", ID, "--output-file", str(tmp_path / "x"))
    assert result.exit_code == 3
    assert "output-form-missing" in result.stderr


def test_invalid_prints_every_finding(fake: FakeServer, assay: Assay) -> None:
    findings = [
        {"code": f"fault-{n}", "severity": "error", "message": f"m{n}", "where": f"layer {n}", "remedy": "r"}
        for n in range(30)
    ]
    fake.submission_states = [submission_document(state="invalid", is_final=True, findings=findings)]
    result = assay("wait", ID)
    assert result.exit_code == 3
    assert all(f"error fault-{n} (layer {n}): m{n}" in result.stdout for n in range(30))


def test_several_base_models_are_asked_about_with_the_list(
    fake: FakeServer, assay: Assay, adapter_folder: Path
) -> None:
    fake.base_models = ["tiny", "large"]
    arguments = ["submit", str(adapter_folder), "--adapter", "tickets", "--suite", "tickets"]
    result = assay(*arguments)
    assert result.exit_code == 3
    assert "large, tiny" in result.stderr
    assert "/home/user/models/tiny" in result.stderr
    assert not fake.sent("POST", "")
    assert assay(*arguments, "--base", "large").exit_code == 0
    assert "There is no base model 'huge'" in assay(*arguments, "--base", "huge").stderr


def test_an_unknown_suite_costs_no_upload(fake: FakeServer, assay: Assay, adapter_folder: Path) -> None:
    result = assay("submit", str(adapter_folder), "--adapter", "tickets", "--suite", "other@2")
    assert result.exit_code == 3
    assert "There is no suite 'other'" in result.stderr
    assert fake.sent("GET", "/suites/other")[0].query == {"number": "2"}
    assert not fake.sent("POST", "")


def test_pickle_weights_are_refused_with_the_way_out(
    fake: FakeServer, assay: Assay, adapter_folder: Path
) -> None:
    (adapter_folder / "adapter_model.safetensors").rename(adapter_folder / "adapter_model.bin")
    result = assay("submit", str(adapter_folder), "--adapter", "tickets", "--suite", "tickets")
    assert result.exit_code == 3
    assert "weights-pickle-only" in result.stderr
    assert "safetensors" in result.stderr
    assert fake.requests == []


def test_several_adapters_ask_which_and_path_answers(
    fake: FakeServer, assay: Assay, adapter_folder: Path, tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    for name in ("run7", "run10"):
        (root / name).mkdir(parents=True)
        for file in ("adapter_config.json", "adapter_model.safetensors"):
            (root / name / file).write_bytes((adapter_folder / file).read_bytes())
    arguments = ["submit", str(root), "--adapter", "tickets", "--suite", "tickets"]
    result = assay(*arguments)
    assert result.exit_code == 3
    assert "adapter-ambiguous" in result.stderr
    assert "run10, run7" in result.stderr
    assert assay(*arguments, "--path", "run7").exit_code == 0


def test_an_interrupted_wait_says_how_to_go_on(
    fake: FakeServer, assay: Assay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("client.api.AssayApi.get_submission", lambda *_: interrupt(None))
    monkeypatch.setattr(
        "client.cli.submissions.find_submission", lambda *_: type("Found", (), {"id": ID, "is_final": False})
    )
    result = assay("wait", ID)
    assert result.exit_code == 130
    assert f"assay wait {ID}" in result.stderr


def test_a_timeout_says_how_to_go_on(fake: FakeServer, assay: Assay) -> None:
    fake.submission_states = [submission_document()]
    result = assay("wait", ID, "--timeout", "0")
    assert result.exit_code == 3
    assert "wait-timeout" in result.stderr
    assert f"assay wait {ID}" in result.stderr


def test_a_restart_of_the_server_does_not_end_the_wait(fake: FakeServer, assay: Assay) -> None:
    num_drops = 0

    def be_away(request: Request) -> None:
        nonlocal num_drops
        if len(fake.requests) > 1 and num_drops < 7:
            num_drops += 1
            raise DropConnection

    fake.before = be_away
    fake.submission_states = [submission_document(), decided("passed")]
    result = assay("wait", ID)
    assert result.exit_code == 0
    assert num_drops == 7
    assert "Trying again" in result.stderr
    assert "Still waiting" in result.stderr


def test_hostile_text_from_the_server_does_not_act(fake: FakeServer, assay: Assay) -> None:
    hostile = "[bold]x[/bold]\x1b[2J\x07"
    job = {"id": "j", "kind": hostile, "state": hostile, "fraction": 0.5, "message": hostile}
    fake.submission_states = [
        submission_document(state=hostile, current_job=job),
        submission_document(state=hostile, current_job=job),
        decided("rejected", rule(hostile, "failed", explanation=hostile), suite=hostile),
    ]
    result = assay("wait", ID)
    assert result.exit_code == 1
    assert "\x1b" not in result.output
    assert "\x07" not in result.output
    assert "[bold]x[/bold]\\x1b[2J\\x07" in result.stdout


def test_a_refusal_prints_its_faults_and_is_an_error(fake: FakeServer, assay: Assay) -> None:
    def refuse(_: Request) -> None:
        errors = [{"code": "c", "message": "m\x1b[2J", "where": "data.jsonl line 17", "remedy": "mend it"}]
        raise Refusal(422, "suite-invalid", "Two faults.", errors=errors)

    fake.before = refuse
    result = assay("wait", ID)
    assert result.exit_code == 3
    assert "error suite-invalid: Two faults." in result.stderr
    assert "error c (data.jsonl line 17): m\\x1b[2J" in result.stderr
    assert "-> mend it" in result.stderr


def test_a_report_by_version_with_examples(fake: FakeServer, assay: Assay) -> None:
    fake.submission_states = [decided("rejected", rule("ood_ratio", "failed"))]
    result = assay("report", "tickets@3", "--examples", "5")
    assert result.exit_code == 0
    assert "REJECTED" in result.stdout
    assert "output: [red]\\x1b[2Jbad[/red]" in result.stdout
    assert fake.sent("GET", "/examples")[0].query == {"passed": "false"}
    assert "There is no submission of tickets@9" in assay("report", "tickets@9").stderr


def test_cancel_retry_and_list(fake: FakeServer, assay: Assay) -> None:
    assert assay("submissions", "cancel", ID).exit_code == 0
    assert assay("submissions", "retry", "tickets@3").exit_code == 0
    assert [request.path.rsplit("/", 1)[1] for request in fake.sent("POST", "")] == ["cancel", "retry"]
    assert "tickets@3" in assay("submissions", "list").stdout
    assert json.loads(assay("submissions", "list", "--json").stdout)[0]["id"] == ID


@pytest.mark.parametrize(
    "arguments",
    [
        ["submit"],
        ["submit", "/nowhere", "--adapter", "a", "--suite", "s"],
        ["wait", "nonsense"],
        ["wait", ID, "--timeout", "soon"],
        ["report", ID, "--output", "pdf"],
        ["nonsense"],
        ["--nonsense"],
    ],
)
def test_usage_errors_end_with_three(assay: Assay, arguments: list[str]) -> None:
    """click's own code for them is 2, which means "inconclusive" here."""
    assert assay(*arguments).exit_code == 3


def test_help_and_version_end_with_zero(assay: Assay) -> None:
    assert assay("--help").exit_code == 0
    assert assay("submit", "--help").exit_code == 0
    assert assay("--version").stdout.startswith("assay 0")


def test_an_error_of_the_client_itself_is_never_a_verdict(
    assay: Assay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("client.cli.submissions.write_report", fail)
    assert assay("report", ID).exit_code == 3
