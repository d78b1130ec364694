"""`assay train`: train on the server and bring the adapter here; try, judge, vary and compare trainings."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from client.api import AssayApi
from client.cli.base_choice import choose_base_model
from client.cli.display import make_display
from client.cli.following import follow_run
from client.cli.options import JsonOption, TimeoutOption
from client.cli.session import Session, session_of
from client.cli.training_estimate import add_estimate_command
from client.cli.training_lint import add_lint_command
from client.cli.training_preflight import add_preflight_command
from client.cli.training_results import end_training, show_training
from client.configuration_file import read_configuration
from client.downloads import Downloader
from client.errors import UnexpectedAnswerError
from client.reports.training import render_comparison, render_runs
from client.run_models import RUN_END_STATES
from client.training_models import TrainingRun

train_app = typer.Typer(no_args_is_help=True, help="Train adapters on the server.")
add_lint_command(train_app)
add_estimate_command(train_app)
add_preflight_command(train_app)

ConfigArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG", exists=True, dir_okay=False, help="Training configuration: JSON, TOML or YAML."
    ),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of the training run.")]
DatasetOption = Annotated[
    list[str], typer.Option("--dataset", help="Dataset version to train on (name@number). Repeatable.")
]
BaseOption = Annotated[
    str | None,
    typer.Option("--base", help="Registered base model; may be omitted where there is only one."),
]
HoldoutOption = Annotated[
    str | None, typer.Option("--holdout", help="Dataset version for the held-out loss.")
]
NameOption = Annotated[
    str | None, typer.Option("--name", help="Name of the run; else the configuration file's.")
]
WaitOption = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end.")]
LintErrorsOption = Annotated[
    bool,
    typer.Option("--allow-lint-errors", help="Begin even when the rules find errors; the server notes it."),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", file_okay=False, help="Folder to make for the trained adapter.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What the options of `run` and `mini` say of the run."""

    config: Path
    datasets: list[str]
    base: str | None
    holdout: str | None
    name: str | None
    purpose: str
    allow_lint_errors: bool
    parent: str | None = None
    note: str = ""


@train_app.command("run")
def run_command(
    context: typer.Context,
    config: ConfigArgument,
    dataset: DatasetOption,
    output: OutputOption = None,
    base: BaseOption = None,
    holdout: HoldoutOption = None,
    name: NameOption = None,
    preflight_only: Annotated[
        bool,
        typer.Option(
            "--preflight-only", help="Only the checks before the first step; ends with 1 if they fail."
        ),
    ] = False,
    parent: Annotated[
        str | None, typer.Option(help="Id of the run that this one repeats or changes.")
    ] = None,
    note: Annotated[str, typer.Option(help="Kept with the run, for people.")] = "",
    allow_lint_errors: LintErrorsOption = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train an adapter, follow the progress, and pull the result into a folder."""
    session = session_of(context)
    wanted = _Wanted(
        config=config,
        datasets=dataset,
        base=base,
        holdout=holdout,
        name=name,
        purpose="preflight" if preflight_only else "training",
        allow_lint_errors=allow_lint_errors,
        parent=parent,
        note=note,
    )
    _run(session, wanted, output=output, wait=wait, timeout_seconds=timeout, as_json=as_json)


@train_app.command("mini")
def mini_command(
    context: typer.Context,
    config: ConfigArgument,
    dataset: DatasetOption,
    base: BaseOption = None,
    holdout: HoldoutOption = None,
    name: NameOption = None,
    allow_lint_errors: LintErrorsOption = False,
    wait: WaitOption = True,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try a configuration on 200 examples for 200 steps, within ten minutes.

    Says whether format, template and mask are right and whether the loss falls; ends with 1 when not.
    What is laid over the configuration is kept on the server (Mini configurations in the admin).
    """
    wanted = _Wanted(
        config=config,
        datasets=dataset,
        base=base,
        holdout=holdout,
        name=name,
        purpose="mini",
        allow_lint_errors=allow_lint_errors,
    )
    _run(session_of(context), wanted, output=None, wait=wait, timeout_seconds=timeout, as_json=as_json)


@train_app.command("vary")
def vary_command(
    context: typer.Context,
    run_id: RunArgument,
    remedy: Annotated[
        str,
        typer.Option(
            help="more-general-data, lower-rate, fewer-epochs or last-two-thirds; tried in this order."
        ),
    ],
    general_dataset: Annotated[
        str | None, typer.Option(help="General data for more-general-data; else the server chooses.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the new run; else the old one and the remedy.")
    ] = None,
    note: Annotated[str, typer.Option(help="Kept with the run, for people.")] = "",
    allow_lint_errors: LintErrorsOption = False,
    output: OutputOption = None,
    wait: WaitOption = True,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin a variation of a run whose model has forgotten: the same but for one remedy."""
    session = session_of(context)
    with session.open_api() as api:
        run = api.vary_training_run(
            run_id,
            remedy=remedy,
            general_dataset=general_dataset,
            name=name,
            note=note,
            allow_lint_errors=allow_lint_errors,
        )
        session.output.notice(f"{run.name}: {run.note}")
        run = _follow(session, api, run, wait=wait, timeout_seconds=timeout)
        _pull(session, api, run, output)
        end_training(session.output, api, run, as_json=as_json)


@train_app.command("show")
def show_command(
    context: typer.Context,
    run_id: RunArgument,
    output: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Wait for the end and pull the adapter into this folder."),
    ] = None,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run: checks before the first step, findings, last numbers and curves; with --output, wait for it
    and pull its adapter.
    """
    session = session_of(context)
    with session.open_api() as api:
        run = api.get_training_run(run_id)
        if output is not None:
            run = _follow(session, api, run, wait=True, timeout_seconds=timeout)
            _pull(session, api, run, output)
        if not as_json:
            show_training(session.output, api, run)
        end_training(session.output, api, run, as_json=as_json)


@train_app.command("list")
def list_command(
    context: typer.Context,
    state: Annotated[
        str | None, typer.Option(help="Only this state: queued, running, succeeded, ...")
    ] = None,
    purpose: Annotated[str | None, typer.Option(help="Only this purpose: training, mini, preflight.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List training runs, the newest first."""
    session = session_of(context)
    with session.open_api() as api:
        runs = api.list_training_runs(state=state, purpose=purpose, limit=limit)
    if as_json:
        session.output.document(json.dumps([run.document for run in runs], indent=2) + "\n")
        return
    session.output.result(render_runs(runs) if runs else "no training runs")


@train_app.command("compare")
def compare_command(context: typer.Context, run_id: RunArgument, as_json: JsonOption = False) -> None:
    """Show a run beside the one that it varies and its own variations."""
    session = session_of(context)
    with session.open_api() as api:
        document, comparison = api.compare_training_run(run_id)
    if as_json:
        session.output.document(json.dumps(document, indent=2) + "\n")
        return
    session.output.result(render_comparison(comparison))


def _run(
    session: Session,
    wanted: _Wanted,
    *,
    output: Path | None,
    wait: bool,
    timeout_seconds: float | None,
    as_json: bool,
) -> None:
    configuration = read_configuration(wanted.config)
    with session.open_api() as api:
        run = api.create_training_run(
            name=wanted.name or wanted.config.stem,
            base_model=choose_base_model(api, wanted.base),
            datasets=wanted.datasets,
            holdout=wanted.holdout,
            config=configuration,
            purpose=wanted.purpose,
            parent=wanted.parent,
            note=wanted.note,
            allow_lint_errors=wanted.allow_lint_errors,
        )
        run = _follow(session, api, run, wait=wait, timeout_seconds=timeout_seconds)
        _pull(session, api, run, output)
        end_training(session.output, api, run, as_json=as_json)


def _follow(
    session: Session, api: AssayApi, run: TrainingRun, *, wait: bool, timeout_seconds: float | None
) -> TrainingRun:
    session.output.notice(f"training run {run.id}")
    session.output.findings(list(run.lint))
    if not wait or run.state in RUN_END_STATES:
        return run
    follow_run(
        session,
        lambda: api.get_training_run(run.id),
        advice=f"Look at it with: assay train show {run.id}",
        timeout_seconds=timeout_seconds,
    )
    return api.get_training_run(run.id)


def _pull(session: Session, api: AssayApi, run: TrainingRun, output: Path | None) -> None:
    if run.state != "succeeded" or output is None:
        return
    if run.artifact is None:
        raise UnexpectedAnswerError("unexpected-answer", "The run succeeded but names no artifact.")
    with make_display(session.output) as display:
        result = Downloader(api, progress=display).pull(api.get_artifact(run.artifact).manifest, output)
        display.note(f"adapter in {result.target}")
