"""What the data commands print: tables and lines in which foreign text does nothing."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from registry.artifacts.findings import shown
from training.engine.errors import Fault, TrainingEngineError

_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
MAX_SHOWN_FAULTS = 50


class Display:
    """Standard output for results, standard error for everything else."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self.out = Console(markup=False, emoji=False, highlight=False)
        self.err = Console(stderr=True, markup=False, emoji=False, highlight=False)

    def document(self, value: Any) -> None:
        """Print a value as JSON."""
        self.out.print_json(json.dumps(value), indent=1) if self.out.is_terminal else self.out.out(
            json.dumps(value, indent=1, ensure_ascii=False)
        )

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line."""
        self.out.print(Text(shown_whole(text), style=style))

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Print a table; numbers stand at the right."""
        listed = [tuple(row) for row in rows]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for index, heading in enumerate(headings):
            is_number = bool(listed) and all(isinstance(row[index], int | float) for row in listed)
            table.add_column(Text(heading), justify="right" if is_number else "left", overflow="fold")
        for row in listed:
            table.add_row(*(_cell(cell) for cell in row))
        self.out.print(table)

    def findings(self, findings: Sequence[Mapping[str, Any]]) -> None:
        """Print findings, the weightiest first, each with its remedy."""
        if not findings:
            self.line("No findings.", "green")
        for finding in findings:
            place = " ".join(part for part in (finding.get("set", ""), finding["where"]) if part)
            head = Text.assemble(
                (finding["severity"], _STYLES.get(finding["severity"], "")),
                f" {finding['code']}",
                f" ({shown(place)})" if place else "",
                f": {shown_whole(finding['message'])}",
            )
            self.out.print(head)
            if finding["example_ids"]:
                self.out.print(Text(f"  examples: {', '.join(map(shown, finding['example_ids']))}", "dim"))
            if finding["remedy"]:
                self.out.print(Text(f"  -> {shown_whole(finding['remedy'])}"))

    def error(self, error: TrainingEngineError) -> None:
        """Print a refusal with all of its faults to standard error."""
        self.err.print(Text.assemble((f"{error.code}: ", "bold red"), shown_whole(error.message)))
        for fault in error.faults[:MAX_SHOWN_FAULTS]:
            self.err.print(_describe(fault))
        if len(error.faults) > MAX_SHOWN_FAULTS:
            self.err.print(Text(f"  and {len(error.faults) - MAX_SHOWN_FAULTS} more"))


def shown_whole(text: object) -> str:
    """Return foreign text of any length with everything invisible made visible."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(text))


def _cell(value: object) -> Text:
    return Text(f"{value:.3f}" if isinstance(value, float) else shown_whole(value))


def _describe(fault: Fault) -> Text:
    place = f"{shown(fault.where)}: " if fault.where else ""
    remedy = f" -> {shown_whole(fault.remedy)}" if fault.remedy and fault.remedy not in fault.message else ""
    return Text(f"  {place}{shown_whole(fault.message)} [{fault.code}]{remedy}")


class ProgressDisplay:
    """Shows the progress of an engine on a terminal; log lines elsewhere."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=display.err,
            transient=True,
            disable=not display.err.is_terminal,
        )
        self._task = self._progress.add_task("", total=1.0)

    def __enter__(self) -> "ProgressDisplay":
        self._progress.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._progress.stop()

    def progress(self, fraction: float, message: str) -> None:
        """Take the finished fraction."""
        self._progress.update(self._task, completed=fraction, description=shown(message).replace("[", "("))

    def log(self, level: str, message: str) -> None:
        """Take one log line."""
        self._display.err.print(Text(shown_whole(message), style=_STYLES.get(level, "")))

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Take measured values; there are none in the preparation of data."""
