import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from typer.testing import CliRunner, Result

from client.cli import app
from client.cli.console import make_output
from client.cli.session import Session
from client.credentials import LoginFile
from client.retries import RetryPolicy
from client.waiting import WaitSettings
from tests.client.fake_server import TOKEN


class Assay(Protocol):
    """Runs the program and returns how it ended."""

    def __call__(self, *arguments: str, stdin: str | None = None, is_logged_in: bool = True) -> Result: ...


@pytest.fixture
def login_file(tmp_path: Path) -> LoginFile:
    return LoginFile(tmp_path / "home" / "credentials.json")


@pytest.fixture
def sleep() -> Callable[[float], None]:
    return lambda _: None


@pytest.fixture
def assay(
    server_url: str,
    tmp_path: Path,
    login_file: LoginFile,
    sleep: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Assay:
    """The program with a login at the fake server, no pauses, and user folders of its own."""

    def make_test_session(url_option: str | None) -> Session:
        # Made inside the run, so that the consoles write to the runner's streams.
        return Session(
            output=make_output({}),
            url_option=url_option,
            environ=environ,
            login_file=login_file,
            state_folder=tmp_path / "state",
            retry_policy=RetryPolicy(max_attempts=3, sleep=sleep),
            wait_settings=WaitSettings(sleep=sleep),
        )

    environ: dict[str, str] = {}
    monkeypatch.setattr("client.cli.make_session", make_test_session)

    def run(*arguments: str, stdin: str | None = None, is_logged_in: bool = True) -> Result:
        environ.clear()
        if is_logged_in:
            environ.update({"ASSAY_URL": server_url, "ASSAY_TOKEN": TOKEN})
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return run


def safetensors_bytes() -> bytes:
    """A file with one tensor of two zeros."""
    header = json.dumps(
        {"base_model.model.q_proj.lora_A.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8)


@pytest.fixture
def adapter_folder(folder: Path) -> Path:
    """What a training tool leaves behind: an adapter, and things that nobody should upload."""
    config = {
        "peft_type": "LORA",
        "r": 8,
        "lora_alpha": 16,
        "target_modules": ["q_proj"],
        "base_model_name_or_path": "/home/user/models/tiny",
        "task_type": "CAUSAL_LM",
        "bias": "none",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").write_bytes(safetensors_bytes())
    (folder / "optimizer.pt").write_bytes(b"pickle")
    (folder / "checkpoint-39").mkdir()
    return folder
