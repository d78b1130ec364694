from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from client.cli import app
from client.cli.training_estimate import ESTIMATE_MODULE, add_estimate_command


def test_options_and_help_go_to_the_program_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, list[str]]] = []

    def become(module: str, arguments: list[str], **_: Any) -> None:
        calls.append((module, arguments))

    group = typer.Typer()

    @group.callback()
    def _group() -> None:
        """Keep the group a group, although it has one command."""

    add_estimate_command(group, become=become)
    monkeypatch.setenv("ASSAY_PROGRAM_NAME", "")
    for arguments in (["estimate", "model", "--card", "24GB"], ["estimate", "--help"]):
        assert CliRunner().invoke(group, arguments).exit_code == 0
    assert calls == [(ESTIMATE_MODULE, ["model", "--card", "24GB"]), (ESTIMATE_MODULE, ["--help"])]


def test_the_help_of_train_names_it() -> None:
    assert " estimate " in CliRunner().invoke(app, ["train", "--help"]).output
