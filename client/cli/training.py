"""`assay train`: train a LoRA on the server and bring the adapter here; judge a configuration before."""

from pathlib import Path
from typing import Annotated

import typer

from client.cli.base_choice import choose_base_model
from client.cli.display import make_display
from client.cli.following import follow_run
from client.cli.options import JsonOption, TimeoutOption
from client.cli.run_results import end_run
from client.cli.session import session_of
from client.cli.training_estimate import add_estimate_command
from client.cli.training_lint import add_lint_command
from client.configuration_file import read_configuration
from client.downloads import Downloader
from client.errors import UnexpectedAnswerError
from client.run_models import RUN_END_STATES

train_app = typer.Typer(no_args_is_help=True, help="Train adapters on the server.")
add_lint_command(train_app)
add_estimate_command(train_app)


@train_app.command("run")
def run_command(
    context: typer.Context,
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG", exists=True, dir_okay=False, help="Training configuration: JSON, TOML or YAML."
        ),
    ],
    dataset: Annotated[
        list[str], typer.Option(help="Dataset version to train on (name@number). Repeatable.")
    ],
    output: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder to make for the trained adapter.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="Registered base model; may be omitted where there is only one.")
    ] = None,
    holdout: Annotated[str | None, typer.Option(help="Dataset version for the held-out loss.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run; else the configuration file's.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end.")] = True,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train an adapter, follow the progress, and pull the result into a folder."""
    session = session_of(context)
    configuration = read_configuration(config)
    with session.open_api() as api:
        run = api.create_training_run(
            name=name or config.stem,
            base_model=choose_base_model(api, base),
            datasets=dataset,
            holdout=holdout,
            config=configuration,
        )
        session.output.notice(f"training run {run.id}")
        if wait and not run.is_final:
            run = follow_run(
                session,
                lambda: api.get_training_run(run.id),
                advice=f"Look at it with: assay train show {run.id}",
                timeout_seconds=timeout,
            )
        if run.state == "succeeded" and output is not None:
            if run.artifact is None:
                raise UnexpectedAnswerError("unexpected-answer", "The run succeeded but names no artifact.")
            with make_display(session.output) as display:
                result = Downloader(api, progress=display).pull(
                    api.get_artifact(run.artifact).manifest, output
                )
                display.note(f"adapter in {result.target}")
    end_run(session.output, run, noun="training run", as_json=as_json)


@train_app.command("show")
def show_command(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of the training run.")],
    output: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Wait for the end and pull the adapter into this folder."),
    ] = None,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a training run; with --output, wait for it and pull its adapter."""
    session = session_of(context)
    with session.open_api() as api:
        run = api.get_training_run(run_id)
        if output is not None and run.state not in RUN_END_STATES:
            run = follow_run(
                session,
                lambda: api.get_training_run(run_id),
                advice="Run the same command again to go on waiting.",
                timeout_seconds=timeout,
            )
        if output is not None and run.artifact is not None:
            with make_display(session.output) as display:
                Downloader(api, progress=display).pull(api.get_artifact(run.artifact).manifest, output)
    end_run(session.output, run, noun="training run", as_json=as_json)
