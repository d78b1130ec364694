"""The commands."""

import functools
import os
from collections.abc import Callable
from typing import Final, ParamSpec

import typer

from training.engine.data.program.display import Display
from training.engine.errors import TrainingEngineError

EXIT_FINDINGS: Final = 1
"""Something was found that the command was asked to look for: overlap, an error of a check."""
EXIT_ERROR: Final = 3
"""Usage or input at fault; the same number as the rest of `assay`."""

PROGRAM_NAME_VARIABLE: Final = "ASSAY_PROGRAM_NAME"
_CLICK_USAGE_ERROR: Final = 2

P = ParamSpec("P")
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Prepare data on files alone: look, clean, split, mix, compare, review, make.",
)


def answers_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Make a command print refusals with all of their faults and end with 3."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except TrainingEngineError as error:
            Display().error(error)
            raise typer.Exit(EXIT_ERROR) from error
        except OSError as error:
            name = error.filename or ""
            Display().err.print(f"file-error: {name}: {error.strerror or error}", style="red")
            raise typer.Exit(EXIT_ERROR) from error

    return guarded


def main(arguments: list[str] | None = None) -> None:
    """Run the program; its name in help texts is that of the command that people type."""
    from training.engine.data.program import commands, make, review  # noqa: F401 (they register themselves)

    name = os.environ.get(PROGRAM_NAME_VARIABLE, "python -m training.engine.data")
    try:
        app(args=arguments, prog_name=name)
    except SystemExit as end:
        # click ends a usage error with 2, which in Assay means "inconclusive".
        raise SystemExit(EXIT_ERROR if end.code == _CLICK_USAGE_ERROR else end.code) from None
