"""`assay up` and `assay down`: start and stop the embedded stack of this machine."""

import os
from collections.abc import Callable, Sequence

import typer

from client.cli.programs import become_program

STACK_MODULE = "config.stack"
_NEEDED_PACKAGES = ("config", "django", "celery", "uvicorn")
_NOT_INSTALLED = (
    "server-not-installed",
    "The server is not installed here ({missing} missing). "
    "Install it with: pip install 'assay-gate[worker]' (web server and workers) "
    "or 'assay-gate[server]' (web server alone).",
)


def up(context: typer.Context) -> None:
    """Start web server, workers and queue on this machine, until Ctrl-C; with --detach in the background."""
    become_stack(["up", *context.args])


def down(context: typer.Context) -> None:
    """Stop the stack that runs on this machine."""
    become_stack(["stop", *context.args])


def become_stack(
    arguments: Sequence[str],
    *,
    is_installed: Callable[[str], bool] | None = None,
    replace_process: Callable[[str, list[str]], object] = os.execv,
) -> None:
    """Turn this process into the stack's; arguments as in ``become_program``.

    Raises:
        UsageError: The server's packages are not installed.
    """
    become_program(
        STACK_MODULE,
        arguments,
        needed_packages=_NEEDED_PACKAGES,
        not_installed=_NOT_INSTALLED,
        is_installed=is_installed,
        replace_process=replace_process,
    )
