from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from client.cli import app
from client.cli.local_data import COMMANDS, DATA_MODULE, add_local_commands


def test_options_and_help_go_to_the_program_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, list[str]]] = []

    def become(module: str, arguments: list[str], **_: Any) -> None:
        calls.append((module, arguments))

    group = typer.Typer()
    add_local_commands(group, become=become)
    monkeypatch.setenv("ASSAY_PROGRAM_NAME", "")
    for arguments in (["clean", "raw.csv", "--out", "x", "--column", "input=q"], ["split", "--help"]):
        assert CliRunner().invoke(group, arguments).exit_code == 0
    assert calls == [
        (DATA_MODULE, ["clean", "raw.csv", "--out", "x", "--column", "input=q"]),
        (DATA_MODULE, ["split", "--help"]),
    ]


def test_the_help_of_dataset_names_every_command() -> None:
    text = CliRunner().invoke(app, ["dataset", "--help"]).output
    for name in (*COMMANDS, "push", "prepare", "start-review"):
        assert f" {name} " in text
