"""The command line `assay`; ``main`` is its entry point.

Exit codes: 0 passed or done, 1 rejected, 2 inconclusive, 3 usage or server error, 130 stopped by Ctrl-C.
"""

from typing import Annotated

import typer

from client import __version__
from client.cli import (
    account,
    channels,
    datasets,
    doctor,
    handbook,
    incidents,
    jobs,
    registration,
    stack,
    submissions,
    training,
    triage,
)
from client.cli.console import make_streams_tolerant
from client.cli.program import AssayGroup
from client.cli.session import make_session

_JUDGE = "Judge an adapter"
_SHIP = "Ship it"
_SET_UP = "Set up"
_LOOK = "Look into the server"
_RUN = "Run a server on this machine"

# Pretty tracebacks would print local variables, and the token is among them.
app = typer.Typer(
    name="assay",
    cls=AssayGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Paragraphs of docstrings are filled anew; the rich form would keep their line breaks.
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Submit fine-tuned adapters to an Assay server, wait for the verdict, promote and pull what passed.",
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"assay {__version__}")
        raise typer.Exit()


@app.callback()
def _prepare(
    context: typer.Context,
    url: Annotated[
        str | None, typer.Option(help="Server to use instead of ASSAY_URL or the one logged in to.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # Tests bring a session of their own.
    context.obj = context.obj or make_session(url)


app.command(rich_help_panel=_JUDGE)(submissions.submit)
app.command("wait", rich_help_panel=_JUDGE)(submissions.wait_command)
app.command(rich_help_panel=_JUDGE)(submissions.report)
app.add_typer(submissions.submissions_app, name="submissions", rich_help_panel=_JUDGE)

app.command(rich_help_panel=_SHIP)(channels.promote)
app.command(rich_help_panel=_SHIP)(channels.rollback)
app.command(rich_help_panel=_SHIP)(channels.pull)
app.add_typer(channels.channel_app, name="channel", rich_help_panel=_SHIP)

app.command(rich_help_panel=_SET_UP)(account.login)
app.command(rich_help_panel=_SET_UP)(account.whoami)
app.add_typer(registration.base_app, name="base", rich_help_panel=_SET_UP)
app.add_typer(datasets.dataset_app, name="dataset", rich_help_panel=_SET_UP)
app.add_typer(registration.suite_app, name="suite", rich_help_panel=_SET_UP)
app.add_typer(registration.baseline_app, name="baseline", rich_help_panel=_SET_UP)
app.add_typer(training.train_app, name="train", rich_help_panel=_SET_UP)
app.add_typer(triage.triage_app, name="triage", rich_help_panel=_SET_UP)

app.add_typer(jobs.jobs_app, name="jobs", rich_help_panel=_LOOK)
app.command(rich_help_panel=_LOOK)(handbook.handbook)
app.add_typer(incidents.incident_app, name="incident", rich_help_panel=_LOOK)
app.command(rich_help_panel=_LOOK)(doctor.doctor)
# Options go to the stack itself, --help included.
_PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
app.command(rich_help_panel=_RUN, context_settings=_PASS_ON)(stack.up)
app.command(rich_help_panel=_RUN, context_settings=_PASS_ON)(stack.down)


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    make_streams_tolerant()
    app()
