"""`assay dataset`: register datasets, prepare them on the server, ask for reviews."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from client.cli.following import follow_run
from client.cli.local_data import add_local_commands
from client.cli.options import JsonOption, TimeoutOption
from client.cli.run_results import end_run
from client.cli.session import session_of
from client.cli.uploading import DATASET_FILE, upload_files
from client.configuration_file import read_configuration
from client.errors import UsageError
from client.reports.text import safe
from client.run_models import Run

dataset_app = typer.Typer(no_args_is_help=True, help="Prepare, register and review datasets.")
_ON_FILES = "On files alone, without a server"
_ON_SERVER = "On the server"


class DatasetRole(StrEnum):
    """What a dataset is for (DESIGN section 3)."""

    TRAIN = "train"
    GENERAL = "general"
    HOLDOUT = "holdout"
    OOD = "ood"
    REGRESSION = "regression"
    CANARY = "canary"


@dataset_app.command("push", rich_help_panel=_ON_SERVER)
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
        artifact = upload_files(session, api, "dataset", {DATASET_FILE: file})
        version = api.create_dataset_version(name=name, artifact=artifact, role=role.value)
    verified = "verified" if version.is_verified else "references not verified"
    session.output.result(
        safe(f"{version.reference} ({version.role}, {version.num_examples} examples, {verified})")
    )


@dataset_app.command("prepare", rich_help_panel=_ON_SERVER)
def prepare_command(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Dataset of the main set; others go to NAME-<role>.")
    ],
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", exists=True, help="Raw file, or a folder of raw files.")
    ],
    recipe: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Recipe, JSON, TOML or YAML; all steps when not given."
        ),
    ] = None,
    general: Annotated[
        str | None, typer.Option(help="Dataset version of general data (name@number), for a mix.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(help="Dataset version in which nothing of this may stand (name@number); repeat."),
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="Base model whose tokenizer measures lengths; none if not given.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end.")] = True,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Upload raw files and let the server clean, divide and document them: the sets become datasets."""
    session = session_of(context)
    content = {} if recipe is None else read_configuration(recipe)
    with session.open_api() as api:
        artifact = upload_files(session, api, "raw_data", _list_files(source))
        raw = api.create_raw_data(name=name, artifact=artifact)
        run = api.create_preparation(
            name=name,
            raw_data=raw,
            recipe=content,
            general=general,
            evaluation_sets=against or (),
            base_model=base,
        )
        session.output.notice(f"preparation {run.id}")
        if wait and not run.is_final:
            run = follow_run(
                session,
                lambda: api.get_preparation(run.id),
                advice="Run the same command again to go on waiting; nothing is done twice.",
                timeout_seconds=timeout,
            )
    if not as_json:
        for line in _describe(run):
            session.output.result(safe(line))
    end_run(session.output, run, noun="preparation", as_json=as_json)


@dataset_app.command("start-review", rich_help_panel=_ON_SERVER)
def start_review_command(
    context: typer.Context,
    reference: Annotated[str, typer.Argument(metavar="NAME@NUMBER", help="Dataset version.")],
    num: Annotated[int, typer.Option(min=1, help="How many examples, chosen at random.")] = 100,
    every: Annotated[
        bool, typer.Option("--all", help="All examples: confirms the references of an evaluation set.")
    ] = False,
) -> None:
    """Ask people to look at a dataset version in the browser; prints the address."""
    session = session_of(context)
    with session.open_api() as api:
        address = api.create_review(reference, num_examples=None if every else num)
    session.output.result(safe(f"review: {address}"))


add_local_commands(dataset_app, panel=_ON_FILES)


def _list_files(source: Path) -> dict[str, Path]:
    """The files of a raw folder by their relative names; hidden ones are left out."""
    if source.is_file():
        return {source.name: source}
    files = {
        path.relative_to(source).as_posix(): path
        for path in sorted(source.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(source).parts)
    }
    if not files:
        raise UsageError("folder-empty", f"{source} holds no file.")
    return files


def _describe(run: Run) -> list[str]:
    """What came out: sets with their versions, counts, and the address of the page."""
    document = json.loads(json.dumps(run.document))
    values = document.get("values") or {}
    lines = []
    if "num_rows" in values:
        lines.append(
            f"{values['num_rows']} rows: {values['num_bad']} bad, {values['num_dropped']} dropped by cleaning"
        )
    for item in document.get("sets") or []:
        lines.append(f"{item['role']}: {item['dataset_version']}, {item['num_examples']} examples")
    findings = values.get("findings") or {}
    if any(findings.values()):
        lines.append("findings: " + ", ".join(f"{num} {name}" for name, num in findings.items() if num))
    page = (document.get("links") or {}).get("page")
    return [*lines, f"card: {page}"] if page else lines
