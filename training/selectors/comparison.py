"""Compares a training run with its relatives: the run that it varies and its variations (MISSION F8)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from training.models import MetricPoint, TrainingRun
from training.selectors.runs import list_training_runs

MAX_RELATIVES: Final = 24
MAX_ANCESTORS: Final = 50

VerdictRows = Mapping[str, Mapping[str, str | float | None]]
"""Name of a row, such as "regression/chat", to the value by digest of the adapter's artifact."""
VERDICT_SOURCES: list[Callable[[Sequence[str]], VerdictRows]] = []
"""Who knows how adapters were judged: functions of the digests of their artifacts. This app may not know the
evaluation; the project registers one here when it starts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """One line of the table.

    Attributes:
        name: A setting such as "training.learning_rate", a measure, or a row of a verdict.
        values: One for each run, None where it has none.
    """

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A run and its relatives side by side.

    Attributes:
        runs: The eldest first, at most 24.
        differences: Settings and inputs in which they differ.
        measures: What was measured of each.
        verdicts: How the adapters were judged, as far as somebody says so.
        findings: Codes of findings, one tuple for each run, in the order of steps.
    """

    runs: tuple[TrainingRun, ...]
    differences: tuple[ComparedRow, ...]
    measures: tuple[ComparedRow, ...]
    verdicts: tuple[ComparedRow, ...]
    findings: tuple[tuple[str, ...], ...]


def compare_relatives(run: TrainingRun) -> Comparison:
    """The table of a run and its relatives; one column alone when it has none."""
    runs = list_relatives(run)
    return Comparison(
        runs=runs,
        differences=tuple(_list_differences(runs)),
        measures=tuple(_list_measures(runs)),
        verdicts=tuple(_list_verdicts(runs)),
        findings=tuple(
            tuple(dict.fromkeys(finding.code for finding in item.findings.all())) for item in runs
        ),
    )


def list_relatives(run: TrainingRun) -> tuple[TrainingRun, ...]:
    """The eldest ancestor and everything that varies it, by age; of more than 24 the run, its line of
    ancestors and the youngest.
    """
    line = [run]
    while line[-1].parent is not None and len(line) < MAX_ANCESTORS:
        line.append(line[-1].parent)
    eldest = line[-1]
    found = {eldest.pk: eldest}
    generation = [eldest.pk]
    while generation:
        children = TrainingRun.objects.filter(parent_id__in=generation)
        # Nothing keeps a hand from making a run its own ancestor.
        fresh = {child.pk: child for child in children if child.pk not in found}
        found |= fresh
        generation = list(fresh)
    kept = {item.pk for item in line[:MAX_RELATIVES]}
    for item in sorted(found.values(), key=lambda item: item.created_at, reverse=True):
        if len(kept) >= MAX_RELATIVES:
            break
        kept.add(item.pk)
    return tuple(list_training_runs().filter(pk__in=kept).order_by("created_at", "pk"))


def _list_differences(runs: Sequence[TrainingRun]) -> Iterator[ComparedRow]:
    settings = [dict(_flatten(run.config)) for run in runs]
    inputs = [
        {
            "datasets": ", ".join(sorted(str(version) for version in run.datasets.all())),
            "holdout": None if run.holdout is None else str(run.holdout),
            "base model": run.base_model.name,
            "purpose": str(run.purpose),
        }
        for run in runs
    ]
    for columns in (inputs, settings):
        for name in dict.fromkeys(name for column in columns for name in column):
            values = tuple(column.get(name) for column in columns)
            if any(value != values[0] for value in values):
                yield ComparedRow(name=name, values=values)


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        # A range of layers is one setting.
        if isinstance(item, Mapping) and not prefix:
            yield from _flatten(item, f"{name}.")
        elif isinstance(item, list):
            yield f"{prefix}{name}", ", ".join(map(str, item))
        else:
            yield f"{prefix}{name}", item


def _list_measures(runs: Sequence[TrainingRun]) -> Iterator[ComparedRow]:
    for name, measure in _MEASURES.items():
        values = tuple(measure(run) for run in runs)
        if any(value is not None for value in values):
            yield ComparedRow(name=name, values=values)


def _list_verdicts(runs: Sequence[TrainingRun]) -> Iterator[ComparedRow]:
    digests = [run.artifact_id for run in runs]
    known = [digest for digest in digests if digest is not None]
    for source in VERDICT_SOURCES:
        for name, by_digest in source(known).items():
            values = tuple(None if digest is None else by_digest.get(digest) for digest in digests)
            yield ComparedRow(name=name, values=values)


def _last(name: str) -> Callable[[TrainingRun], float | None]:
    def read(run: TrainingRun) -> float | None:
        point = MetricPoint.objects.filter(run=run, name=name).order_by("-step").first()
        return None if point is None else point.value

    return read


def _lowest_held_out(run: TrainingRun) -> float | None:
    point = MetricPoint.objects.filter(run=run, name="held_out_loss").order_by("value").first()
    return None if point is None else point.value


def _last_step(run: TrainingRun) -> int | None:
    point = MetricPoint.objects.filter(run=run).order_by("-step").first()
    return None if point is None else point.step


_MEASURES: Final[Mapping[str, Callable[[TrainingRun], float | None]]] = {
    "last step": _last_step,
    "loss": _last("loss"),
    "held-out loss": _last("held_out_loss"),
    "lowest held-out loss": _lowest_held_out,
    "tokens per second": _last("tokens_per_second"),
}
