from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from client.cli import app
from client.cli.training_lint import LINT_MODULE, add_lint_command


def test_options_and_help_go_to_the_program_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, list[str]]] = []

    def become(module: str, arguments: list[str], **_: Any) -> None:
        calls.append((module, arguments))

    group = typer.Typer()

    @group.callback()
    def _group() -> None:
        """Keep the group a group, although it has one command."""

    add_lint_command(group, become=become)
    monkeypatch.setenv("ASSAY_PROGRAM_NAME", "")
    for arguments in (["lint", "c.toml", "--card-gb", "24"], ["lint", "--help"]):
        assert CliRunner().invoke(group, arguments).exit_code == 0
    assert calls == [(LINT_MODULE, ["c.toml", "--card-gb", "24"]), (LINT_MODULE, ["--help"])]


def test_the_help_of_train_names_it() -> None:
    assert " lint " in CliRunner().invoke(app, ["train", "--help"]).output
