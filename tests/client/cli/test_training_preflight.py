from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from client.cli import app
from client.cli.training_preflight import PREFLIGHT_MODULE, add_preflight_command


def test_options_and_help_go_to_the_program_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, list[str]]] = []

    def become(module: str, arguments: list[str], **_: Any) -> None:
        calls.append((module, arguments))

    group = typer.Typer()

    @group.callback()
    def _group() -> None:
        """Keep the group a group, although it has one command."""

    add_preflight_command(group, become=become)
    monkeypatch.setenv("ASSAY_PROGRAM_NAME", "")
    for arguments in (["preflight", "--base", "b", "--data-only"], ["preflight", "--help"]):
        assert CliRunner().invoke(group, arguments).exit_code == 0
    assert calls == [(PREFLIGHT_MODULE, ["--base", "b", "--data-only"]), (PREFLIGHT_MODULE, ["--help"])]


def test_the_help_of_train_names_it() -> None:
    assert " preflight " in CliRunner().invoke(app, ["train", "--help"]).output
