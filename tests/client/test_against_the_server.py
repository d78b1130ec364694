"""The client against the real web application: what the fake server of the other tests assumes is true."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler
from typer.testing import CliRunner, Result

from client.api import AssayApi
from client.cli import app
from client.cli.console import make_output
from client.cli.session import Session
from client.credentials import LoginFile
from client.downloads import Downloader
from client.http import AssayHttp
from client.uploads import Uploader, hash_files
from tests.fixtures.registry import (
    example,
    jsonl,
    make_base_model,
    make_caller,
    make_shippable_version,
    use_store,
)

SERVER = "http://testserver"
# Downloads run in threads with connections of their own, which see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def store(settings: Any, tmp_path: Path) -> None:
    use_store(settings, tmp_path)


@pytest.fixture
def token() -> str:
    return make_caller("read", "submit", "evaluate", "promote", "pull", "admin").text


@pytest.fixture
def api(token: str) -> Iterator[AssayApi]:
    with AssayHttp(SERVER, token, transport=httpx.WSGITransport(app=WSGIHandler())) as http:
        yield AssayApi(http)


class Assay:
    """Runs the program against the application."""

    def __init__(self, token: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def make_test_session(_: str | None) -> Session:
            return Session(
                output=make_output({}),
                environ={"ASSAY_URL": SERVER, "ASSAY_TOKEN": token},
                login_file=LoginFile(folder / "credentials.json"),
                state_folder=folder,
                transport=httpx.WSGITransport(app=WSGIHandler()),
            )

        monkeypatch.setattr("client.cli.make_session", make_test_session)

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def assay(token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    return Assay(token, tmp_path / "home", monkeypatch)


def test_an_upload_in_several_chunks_is_stored_and_pulled_again(
    api: AssayApi, tmp_path: Path, settings: Any
) -> None:
    settings.UPLOAD_CHUNK_BYTES = 1000
    sources = {"data.jsonl": tmp_path / "a", "empty": tmp_path / "b"}
    sources["data.jsonl"].write_bytes(bytes(range(250)) * 10)
    sources["empty"].write_bytes(b"")
    files = hash_files(sources)
    digest = Uploader(api).upload("dataset", files)
    assert digest == files.manifest.digest
    assert Uploader(api).upload("dataset", files) == digest
    Downloader(api).pull(api.get_artifact(digest).manifest, tmp_path / "pulled")
    assert (tmp_path / "pulled" / "data.jsonl").read_bytes() == bytes(range(250)) * 10


def test_whoami_and_doctor(assay: Assay) -> None:
    result = assay("whoami", "--json")
    assert result.exit_code == 0, result.output
    assert "submit" in json.loads(result.stdout)["scopes"]
    result = assay("doctor", "--json")
    found = {check["name"]: check["condition"] for check in json.loads(result.stdout)}
    # No broker runs here: the server says so, and the doctor passes it on.
    assert found["token"] == found["server database"] == "ok"
    assert found["server broker"] == "wrong"


def test_faulty_examples_are_told_by_line(assay: Assay, tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    file.write_bytes(jsonl(example("a")) + b"{nonsense\n" + jsonl(example("a")))
    result = assay("dataset", "push", "tickets-train", str(file), "--role", "train")
    assert result.exit_code == 3
    assert "dataset-invalid" in result.stderr
    assert "line 2" in result.stderr
    file.write_bytes(jsonl(example("a"), example("b")))
    for _ in range(2):
        result = assay("dataset", "push", "tickets-train", str(file), "--role", "train")
        assert result.stdout.startswith("tickets-train@1 (train, 2 examples"), result.output


def test_the_demo_suite_is_registered(assay: Assay) -> None:
    folder = Path(__file__).parents[2] / "examples" / "tickets"
    for _ in range(2):
        result = assay("suite", "push", str(folder))
        assert result.exit_code == 0, result.output
        assert result.stdout == "suite tickets@1\n"


def test_a_submission_is_made_listed_and_cancelled(assay: Assay, tmp_path: Path) -> None:
    make_base_model("tiny")
    assert assay("suite", "push", str(Path(__file__).parents[2] / "examples" / "tickets")).exit_code == 0
    folder = tmp_path / "adapter"
    folder.mkdir()
    header = b'{"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight":'
    header += b'{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}'
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    config = {
        "peft_type": "LORA",
        "r": 1,
        "lora_alpha": 2,
        "target_modules": ["q_proj"],
        "task_type": "CAUSAL_LM",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    arguments = ["submit", str(folder), "--adapter", "tickets", "--suite", "tickets", "--output", "json"]
    result = assay(*arguments)
    assert result.exit_code == 0, result.output
    submission = json.loads(result.stdout)
    assert (submission["adapter"], submission["version"], submission["base_model"]) == ("tickets", 1, "tiny")
    again = json.loads(assay(*arguments).stdout)
    assert again["id"] == submission["id"]
    assert submission["id"] in assay("submissions", "list", "--json").stdout
    assert assay("report", "tickets@1").exit_code == 0
    assert assay("jobs", "list").exit_code == 0
    assert assay("submissions", "cancel", "tickets@1").exit_code == 0
    assert assay("wait", submission["id"]).exit_code == 3


def test_a_version_without_verdict_is_not_promoted(assay: Assay) -> None:
    make_shippable_version()
    assert assay("channel", "create", "staging").exit_code == 0
    assert "serves nothing" in assay("channel", "show", "staging").stdout
    assert "staging" in assay("channel", "list").stdout
    result = assay("pull", "staging", "nowhere")
    assert result.exit_code == 3
    assert "channel-empty" in result.stderr
    result = assay("promote", "tickets@99", "staging", "--reason", "it is good")
    assert result.exit_code == 3
    result = assay("promote", "tickets@1", "staging", "--reason", "x", "--if-match", '"r77"')
    assert result.exit_code == 3
