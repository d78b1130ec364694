"""The command group that gives every way to end its exit code.

click ends a usage error with 2 and an abort with 1, which in Assay mean "inconclusive" and "rejected"; a
traceback also ends with 1. A CI job must never take such an end for a verdict, so all of them become 3 here.
"""

import logging
import os
import sys
from typing import Any

from typer.core import TyperGroup

from client.cli.console import make_output, silence_broken_pipe
from client.errors import AssayError
from client.exit_codes import ERROR, INTERRUPTED, PASSED

logger = logging.getLogger("client")


class CommandExit(Exception):
    """Ends the program with a code of ``client.exit_codes``."""

    def __init__(self, code: int) -> None:
        """Take the code."""
        super().__init__(code)
        self.code = code


class AssayGroup(TyperGroup):
    """The program `assay`."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program and leave it by ``SystemExit`` with a code of ``client.exit_codes``."""
        sys.exit(self._run(*args, **kwargs))

    def _run(self, *args: Any, **kwargs: Any) -> int:
        try:
            super().main(*args, **kwargs)
        except CommandExit as end:
            return end.code
        except AssayError as error:
            make_output(os.environ).error(error)
            return ERROR
        except BrokenPipeError:
            silence_broken_pipe()
            return ERROR
        except SystemExit as end:
            if end.code == INTERRUPTED:
                make_output(os.environ).notice("Stopped. The same command goes on from here.", "yellow")
            return end.code if end.code in {PASSED, INTERRUPTED} and isinstance(end.code, int) else ERROR
        except Exception:
            logger.exception("assay came upon an error of its own; please report it with these lines")
            return ERROR
        return PASSED
