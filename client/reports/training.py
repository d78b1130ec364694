"""A training run for a terminal: checks, findings, the last numbers and small curves."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from client.errors import ErrorDetail
from client.reports.text import STATE_STYLES, make_table, safe
from client.safe_text import shorten
from client.training_models import Comparison, Curve, TrainingRun

SPARKS: Final = "▁▂▃▄▅▆▇█"
SPARK_WIDTH: Final = 40
_SHOWN_CURVES: Final = (
    "loss",
    "held_out_loss",
    "gradient_norm",
    "learning_rate",
    "tokens_per_second",
    "padding_fraction",
    "memory_bytes",
)
_CHECK_STYLES: Final = {"passed": "green", "failed": "red", "warning": "yellow", "skipped": "dim"}
_PART_TITLES: Final = {
    "differences": "differs in",
    "measures": "measured",
    "verdicts": "judged",
    "monitor": "found",
}


def sparkline(values: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """Return a curve as a line of at most ``width`` bars, each the mean of its stretch.

    >>> sparkline([3.0, 2.0, 1.0])
    '█▅▁'
    """
    if not values:
        return ""
    num_bars = min(width, len(values))
    edges = [len(values) * number // num_bars for number in range(num_bars + 1)]
    means = [sum(values[begin:end]) / (end - begin) for begin, end in pairwise(edges)]
    low, span = min(means), max(means) - min(means)
    if span <= 0:
        return SPARKS[0] * num_bars
    return "".join(SPARKS[round((mean - low) / span * (len(SPARKS) - 1))] for mean in means)


def render_curves(curves: Mapping[str, Curve]) -> RenderableType | None:
    """Return first, last and lowest value of each curve with its form; None without points."""
    shown = [name for name in _SHOWN_CURVES if curves.get(name)]
    if not shown:
        return None
    numbers = frozenset({"first", "last", "lowest", "step"})
    table = make_table(("curve", "first", "last", "lowest", "step", ""), right_aligned=numbers)
    for name in shown:
        values = [value for _, value in curves[name]]
        row = (name, *(f"{value:.4g}" for value in (values[0], values[-1], min(values))))
        table.add_row(*map(safe, row), safe(str(curves[name][-1][0])), Text(sparkline(values)))
    return table


def render_checks(document: object) -> RenderableType | None:
    """Return the checks of a preflight or mini document as a table; None without one."""
    checks = document.get("checks") if isinstance(document, Mapping) else None
    listed = [check for check in checks if isinstance(check, Mapping)] if isinstance(checks, list) else []
    if not listed:
        return None
    table = make_table(("check", "outcome", "what was seen"))
    for check in listed:
        status = str(check.get("status", ""))
        said = " ".join(str(check[name]) for name in ("message", "remedy") if check.get(name))
        row = check.get("row")
        code = f"{check.get('code', '')} ({row})" if row else str(check.get("code", ""))
        table.add_row(safe(code), safe(status, _CHECK_STYLES.get(status, "")), safe(said))
    return table


def list_findings(run: TrainingRun) -> list[ErrorDetail]:
    """Return what the monitor found, in the form of faults."""
    return [
        ErrorDetail(
            code=finding.code,
            message=finding.message,
            where=_place(finding.step, finding.row, finding.code),
            remedy=finding.treatment or None,
            severity=finding.severity,
        )
        for finding in run.findings
    ]


def render_runs(runs: Sequence[TrainingRun]) -> RenderableType:
    """Return a table of runs."""
    table = make_table(("name", "purpose", "state", "findings", "created", "id"))
    for run in runs:
        state = f"{run.state}: {run.verdict}" if run.verdict else run.state
        style = STATE_STYLES.get(run.verdict or run.state, "")
        codes = ", ".join(dict.fromkeys(finding.code for finding in run.findings))
        table.add_row(
            safe(run.name),
            safe(run.purpose),
            safe(state, style),
            safe(shorten(codes, 60) or "-"),
            safe(run.created_at or "-"),
            safe(run.id),
        )
    return table


def render_comparison(comparison: Comparison) -> RenderableType:
    """Return the table of a run and its relatives, a column each."""
    headings = [f"{name} ({remedy})" if remedy else name for name, _, remedy in comparison.runs]
    # Headings of a table go through no markup here, but names are still the server's.
    table = make_table(("", *(safe(heading).plain for heading in headings)))
    table.add_row(
        safe("state"), *(safe(state, STATE_STYLES.get(state, "")) for _, state, _ in comparison.runs)
    )
    for title, name, values in _iterate_rows(comparison):
        table.add_row(safe(f"{title}: {name}", "dim"), *map(safe, values))
    return table


def _iterate_rows(comparison: Comparison) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for part, rows in comparison.parts.items():
        for name, values in rows:
            yield _PART_TITLES.get(part, part), name, values


def _place(step: int, row: str, code: str) -> str:
    return f"step {step}" if row in ("", code) else f"step {step}, {row}"
