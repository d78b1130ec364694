"""Becoming another program of Assay, so that signals and the exit status are its own.

The other programs are started, never imported, so that the client stays free of what they need.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence

from client.errors import UsageError


def become_program(
    module: str,
    arguments: Sequence[str],
    *,
    needed_packages: Sequence[str],
    not_installed: tuple[str, str],
    is_installed: Callable[[str], bool] | None = None,
    replace_process: Callable[[str, list[str]], object] = os.execv,
) -> None:
    """Turn this process into `python -m module`.

    Args:
        module: The program.
        arguments: Command and options of it.
        needed_packages: Top-level packages that it cannot do without; looked for before it is started.
            Parts of packages are not asked for: that would import the package.
        not_installed: Code and wording of the refusal when one is missing; ``{missing}`` names them.
        is_installed: Whether a top-level package can be imported; None asks the interpreter.
        replace_process: Replaces the process; tests put something else there.

    Raises:
        UsageError: A package is not installed.
    """
    is_there = is_installed or _is_installed
    missing = [name for name in needed_packages if not is_there(name)]
    if missing:
        code, wording = not_installed
        raise UsageError(code, wording.format(missing=", ".join(missing)))
    sys.stdout.flush()
    sys.stderr.flush()
    replace_process(sys.executable, [sys.executable, "-m", module, *arguments])


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
