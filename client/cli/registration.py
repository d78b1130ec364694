"""`assay base`, `suite` and `baseline`: what has to be on the server before anything can be
judged.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from client.base_model_folder import select_base_model_files
from client.cli.base_choice import choose_base_model
from client.cli.following import follow_run
from client.cli.options import JsonOption, TimeoutOption
from client.cli.run_results import end_run
from client.cli.session import session_of
from client.cli.uploading import DATASET_FILE, upload_files
from client.reports.text import make_table, safe
from client.suite_folder import SUITE_ROLES, read_suite_folder

base_app = typer.Typer(no_args_is_help=True, help="Register and list base models.")
suite_app = typer.Typer(no_args_is_help=True, help="Register evaluation suites.")
baseline_app = typer.Typer(no_args_is_help=True, help="Run the prompt-only baseline of a base model.")


@base_app.command("add")
def add_base_command(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name to register it under.")],
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", exists=True, file_okay=False, help="Folder in the Hugging Face layout."
        ),
    ],
    source: Annotated[
        str | None, typer.Option(help="Where it comes from, as a note: a hub id, a licence.")
    ] = None,
) -> None:
    """Upload and register a base model: safetensors, config, tokenizer. Other files are left out with a
    notice.
    """
    session = session_of(context)
    selection = select_base_model_files(folder)
    for left_out in selection.left_out:
        session.output.notice(f"left out: {left_out}", "dim")
    with session.open_api() as api:
        artifact = upload_files(session, api, "base_model", selection.sources)
        model = api.create_base_model(name=name, artifact=artifact, source=source)
    detail = f", {model.architecture}" if model.architecture else ""
    parameters = f", {model.num_parameters:,} parameters" if model.num_parameters else ""
    session.output.result(safe(f"base model {model.name}{detail}{parameters}, artifact {model.artifact}"))


@base_app.command("list")
def list_bases_command(context: typer.Context) -> None:
    """List the registered base models."""
    session = session_of(context)
    with session.open_api() as api:
        models = api.list_base_models()
    table = make_table(
        ("name", "architecture", "parameters", "artifact"), right_aligned=frozenset({"parameters"})
    )
    for model in models:
        num_parameters = "-" if model.num_parameters is None else f"{model.num_parameters:,}"
        table.add_row(
            safe(model.name), safe(model.architecture or "-"), safe(num_parameters), safe(model.artifact)
        )
    session.output.result(table if models else "no base models")


@suite_app.command("push")
def push_suite_command(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help=f"suite.json and {', '.join(SUITE_ROLES)} (.jsonl).",
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Upload a suite with its four sets; what the server has already is not sent again."""
    session = session_of(context)
    suite = read_suite_folder(folder)
    with session.open_api() as api:
        datasets: dict[str, str] = {}
        for role, file in suite.files.items():
            artifact = upload_files(session, api, "dataset", {DATASET_FILE: file})
            version = api.create_dataset_version(name=f"{suite.name}-{role}", artifact=artifact, role=role)
            session.output.notice(f"{version.reference}: {version.num_examples} examples")
            datasets[role] = version.reference
        answer = api.create_suite(definition=suite.definition, datasets=datasets)
    if as_json:
        session.output.document(json.dumps(answer, indent=2) + "\n")
        return
    session.output.result(safe(f"suite {answer.get('reference', suite.name)}"))


@baseline_app.command("run")
def run_baseline_command(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="Suite: name, or name@number.")],
    base: Annotated[
        str | None, typer.Option(help="Registered base model; may be omitted where there is only one.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end.")] = True,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the base model with the prompt-only solution on a suite; a candidate must beat it."""
    session = session_of(context)
    with session.open_api() as api:
        run = api.create_baseline(suite=suite, base_model=choose_base_model(api, base))
        if wait and not run.is_final:
            run = follow_run(
                session,
                lambda: api.get_baseline(run.id),
                advice="Run the same command again to go on waiting; nothing is started twice.",
                timeout_seconds=timeout,
            )
    end_run(session.output, run, noun="baseline", as_json=as_json)
