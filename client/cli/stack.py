"""`assay up` and `assay down`: start and stop the embedded stack of this machine.

The server is another program: it is started, never imported, so that the client stays free of Django and
torch.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence

import typer

from client.errors import UsageError

STACK_MODULE = "config.stack"
# The top-level names alone are looked for: asking for `config.stack` itself would import the package
# `config`.
_NEEDED_PACKAGES = ("config", "django", "celery", "uvicorn")


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
    """Turn this process into the stack's, so that signals and the exit status are the stack's own.

    Args:
        arguments: Command and options of the stack.
        is_installed: Whether a top-level package can be imported; None asks the interpreter.
        replace_process: Replaces the process; tests put something else there.

    Raises:
        UsageError: The server's packages are not installed.
    """
    is_there = is_installed or _is_installed
    missing = [name for name in _NEEDED_PACKAGES if not is_there(name)]
    if missing:
        raise UsageError(
            "server-not-installed",
            f"The server is not installed here ({', '.join(missing)} missing). "
            "Install it with: pip install 'assay-gate[worker]' (web server and workers) "
            "or 'assay-gate[server]' (web server alone).",
        )
    sys.stdout.flush()
    sys.stderr.flush()
    replace_process(sys.executable, [sys.executable, "-m", STACK_MODULE, *arguments])


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
