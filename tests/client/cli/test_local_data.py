import os
from functools import partial
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from client.cli import app
from client.cli.local_data import COMMANDS, DATA_MODULE, MODEL_MODULES, add_local_commands
from client.cli.programs import become_program
from client.errors import UsageError


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


@pytest.mark.parametrize("name", MODEL_MODULES)
def test_commands_that_run_models_are_programs_of_their_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, list[str]]] = []

    def become(module: str, arguments: list[str], *, needed_packages: tuple[str, ...], **_: Any) -> None:
        assert "torch" in needed_packages
        calls.append((module, arguments))

    group = typer.Typer()
    add_local_commands(group, become=become)
    monkeypatch.setenv("ASSAY_PROGRAM_NAME", "")
    assert CliRunner().invoke(group, [name, "set.jsonl", "--out", "x"]).exit_code == 0
    assert calls == [(f"workers.job.{name}", ["set.jsonl", "--out", "x"])]
    assert os.environ["ASSAY_PROGRAM_NAME"] == "assay dataset"


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_PROGRAM_NAME", "")
    group = typer.Typer()
    add_local_commands(group, become=partial(become_program, is_installed=lambda name: name != "torch"))
    result = CliRunner().invoke(group, ["distil", "set.jsonl", "--out", "x"])
    assert isinstance(result.exception, UsageError)
    assert result.exception.code == "models-not-installed"
    assert "torch missing" in str(result.exception) and "assay-gate[worker]" in str(result.exception)


def test_the_help_of_dataset_names_every_command() -> None:
    text = CliRunner().invoke(app, ["dataset", "--help"]).output
    for name in (*COMMANDS, "push", "prepare", "start-review"):
        assert f" {name} " in text
