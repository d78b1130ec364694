"""What the command line writes: results on stdout, everything else on stderr, all of it made safe first.

On a terminal notices are plain; elsewhere (CI logs) each carries its time, because nothing else does there.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console, RenderableType
from rich.text import Text

from client.errors import AssayError, ErrorDetail
from client.reports.text import render_findings
from client.safe_text import visible

# Width of what goes into a file or a CI log, where there is no terminal to ask; COLUMNS still wins.
_LOG_WIDTH = 140


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The two streams. ``is_live``: stderr is a terminal on which bars can be redrawn."""

    out: Console
    err: Console
    is_live: bool

    def result(self, content: RenderableType) -> None:
        """Write a result for people to stdout."""
        self.out.print(content)

    def document(self, text: str) -> None:
        """Write a document for a program to stdout, byte for byte."""
        self.out.file.write(text)
        self.out.file.flush()

    def notice(self, message: str, style: str = "") -> None:
        """Write a line for people to stderr; the message may be foreign text."""
        prefix = "" if self.is_live else f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} "
        self.err.print(Text.assemble(prefix, (visible(message), style)), soft_wrap=True)

    def findings(self, findings: list[ErrorDetail]) -> None:
        """Write each finding to stderr."""
        if findings:
            self.err.print(render_findings(findings))

    def error(self, error: AssayError) -> None:
        """Write an error with all of its separate faults to stderr."""
        text = Text.assemble(("error", "bold red"), f" {visible(error.code)}: {visible(error.message)}")
        self.err.print(text, soft_wrap=True)
        self.findings(list(error.details))


def make_output(environ: Mapping[str, str]) -> Output:
    """Return consoles for the present stdout and stderr.

    Args:
        environ: The environment; ``NO_COLOR`` (https://no-color.org), ``TERM`` and ``COLUMNS`` are obeyed.
    """
    is_live = sys.stderr.isatty() and environ.get("TERM") not in {"dumb", "unknown"}
    return Output(
        out=_console(environ, is_error=False, is_terminal=sys.stdout.isatty()),
        err=_console(environ, is_error=True, is_terminal=sys.stderr.isatty()),
        is_live=is_live,
    )


def _console(environ: Mapping[str, str], *, is_error: bool, is_terminal: bool) -> Console:
    width = None if is_terminal or "COLUMNS" in environ else _LOG_WIDTH
    # Markup, emoji codes and highlighting would all act on text that a model or a user wrote.
    return Console(
        stderr=is_error,
        markup=False,
        emoji=False,
        highlight=False,
        width=width,
        no_color=bool(environ.get("NO_COLOR")) or None,
    )


def make_streams_tolerant() -> None:
    """Let a character that stdout's encoding lacks appear as an escape instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def silence_broken_pipe() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain about a closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
