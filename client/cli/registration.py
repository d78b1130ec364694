"""`assay base`, `dataset`, `suite` and `baseline`: what has to be on the server before anything can be
judged.
"""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from client.api import AssayApi
from client.base_model_folder import select_base_model_files
from client.cli.base_choice import choose_base_model
from client.cli.display import make_display
from client.cli.following import follow_run
from client.cli.options import JsonOption, TimeoutOption
from client.cli.run_results import end_run
from client.cli.session import Session, session_of
from client.reports.text import make_table, safe
from client.suite_folder import SUITE_ROLES, read_suite_folder
from client.uploads import Uploader, hash_files

base_app = typer.Typer(no_args_is_help=True, help="Register and list base models.")
dataset_app = typer.Typer(no_args_is_help=True, help="Register datasets.")
suite_app = typer.Typer(no_args_is_help=True, help="Register evaluation suites.")
baseline_app = typer.Typer(no_args_is_help=True, help="Run the prompt-only baseline of a base model.")

DATASET_FILE = "data.jsonl"


class DatasetRole(StrEnum):
    """What a dataset is for (DESIGN section 3)."""

    TRAIN = "train"
    GENERAL = "general"
    HOLDOUT = "holdout"
    OOD = "ood"
    REGRESSION = "regression"
    CANARY = "canary"


def _upload(session: Session, api: AssayApi, kind: str, sources: dict[str, Path]) -> str:
    with make_display(session.output) as display:
        uploader = Uploader(api, journal=session.upload_journal(), progress=display)
        return uploader.upload(kind, hash_files(sources, display))


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
        artifact = _upload(session, api, "base_model", selection.sources)
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


@dataset_app.command("push")
def push_dataset_command(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the dataset; made if it is new.")],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="Examples, one JSON object a line."),
    ],
    role: Annotated[DatasetRole, typer.Option(help="What the examples are for.")],
) -> None:
    """Upload examples as the next version of a dataset; the same bytes give the version that exists."""
    session = session_of(context)
    with session.open_api() as api:
        artifact = _upload(session, api, "dataset", {DATASET_FILE: file})
        version = api.create_dataset_version(name=name, artifact=artifact, role=role.value)
    verified = "verified" if version.is_verified else "references not verified"
    session.output.result(
        safe(f"{version.reference} ({version.role}, {version.num_examples} examples, {verified})")
    )


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
            artifact = _upload(session, api, "dataset", {DATASET_FILE: file})
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
