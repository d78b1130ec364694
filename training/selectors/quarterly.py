"""The quarterly review of the incident register (MISSION T6): which patterns are new, and what is left to do.

It tells the end of the quarter from what is stored now: verdicts given later on count as they are now.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Min, Q, QuerySet

from training.choices import IncidentState, SymptomOrigin
from training.models import Incident, Symptom
from training.selectors.handbook import name_symptom
from training.selectors.incidents import RECURRENCE_WINDOW
from training.selectors.quarters import Quarter

MAX_LISTED: Final = 200
"""Of each list; the counts beside it are of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymptomCount:
    """One row of the handbook in a quarter.

    Attributes:
        code: Of the row; None stands for incidents without a row.
        symptom: What is seen, "" without a row.
        num_opened: Incidents opened in the quarter, dismissed ones left out.
        num_resolved: How many of these are resolved by now.
        is_new: Whether the row occurred for the first time ever.
    """

    code: str | None
    symptom: str
    num_opened: int
    num_resolved: int
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedIncident:
    """An incident in a list."""

    number: int
    title: str
    state: str
    symptom: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRow:
    """A row of the handbook in a list."""

    code: str
    symptom: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedSymptom:
    """A symptom that recurred and is no check yet; `incidents` are those that still ask for it."""

    code: str
    num_occurrences: int
    incidents: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarterReview:
    """What a quarter's incidents say.

    Attributes:
        quarter: Of the year, in UTC.
        num_opened: In the quarter, dismissed ones included.
        num_dismissed: How many of these turned out to be none.
        num_resolved: Incidents resolved in the quarter, whenever they were opened.
        median_seconds_to_resolve: Of those; None without any.
        by_symptom: Rows that occurred, the most frequent first.
        new_symptoms: Rows that occurred for the first time ever.
        rows_added: Rows that people added to the handbook in the quarter.
        rows_to_add: Incidents of the quarter that no row of the handbook fits.
        repeated: Symptoms that recurred and wait for a check or a reason against one.
        num_open: Incidents that were not closed at the end of the quarter.
        open_incidents: The oldest of these first.
        never_occurred: Rows of the handbook that never occurred until the end of the quarter.
    """

    quarter: Quarter
    num_opened: int
    num_dismissed: int
    num_resolved: int
    median_seconds_to_resolve: float | None
    by_symptom: tuple[SymptomCount, ...]
    new_symptoms: tuple[ListedRow, ...]
    rows_added: tuple[ListedRow, ...]
    rows_to_add: tuple[ListedIncident, ...]
    repeated: tuple[RepeatedSymptom, ...]
    num_open: int
    open_incidents: tuple[ListedIncident, ...]
    never_occurred: tuple[ListedRow, ...]


def review_quarter(quarter: Quarter) -> QuarterReview:
    """Sums up one quarter."""
    opened = Incident.objects.filter(opened_at__gte=quarter.begins_at, opened_at__lt=quarter.ends_at)
    real = opened.exclude(state=IncidentState.DISMISSED)
    until_end = Incident.objects.filter(opened_at__lt=quarter.ends_at)
    resolve_seconds = _list_resolve_seconds(quarter)
    open_ones = until_end.filter(Q(closed_at=None) | Q(closed_at__gte=quarter.ends_at)).order_by("number")
    known = {row.code: row for row in Symptom.objects.prefetch_related("texts")}
    first_times = _find_first_times(until_end)
    counts = _count_symptoms(
        real, known, {code for code, at in first_times.items() if at >= quarter.begins_at}
    )
    rows_added = Symptom.objects.filter(
        origin=SymptomOrigin.OWN, created_at__gte=quarter.begins_at, created_at__lt=quarter.ends_at
    )
    never = [
        row for row in known.values() if row.code not in first_times and row.created_at < quarter.ends_at
    ]
    return QuarterReview(
        quarter=quarter,
        num_opened=opened.count(),
        num_dismissed=opened.count() - real.count(),
        num_resolved=len(resolve_seconds),
        median_seconds_to_resolve=statistics.median(resolve_seconds) if resolve_seconds else None,
        by_symptom=counts,
        new_symptoms=_list_rows(known[item.code] for item in counts if item.is_new and item.code is not None),
        rows_added=_list_rows(rows_added.prefetch_related("texts")),
        rows_to_add=_list_incidents(real.filter(symptom=None).order_by("number")),
        repeated=_list_repeated(quarter),
        num_open=open_ones.count(),
        open_incidents=_list_incidents(open_ones),
        never_occurred=_list_rows(never),
    )


def _list_resolve_seconds(quarter: Quarter) -> list[float]:
    resolved = Incident.objects.filter(
        state=IncidentState.RESOLVED, closed_at__gte=quarter.begins_at, closed_at__lt=quarter.ends_at
    )
    times = resolved.values_list("opened_at", "closed_at")
    return [(closed - opened).total_seconds() for opened, closed in times if closed is not None]


def _find_first_times(incidents: QuerySet[Incident]) -> dict[str, datetime]:
    real = incidents.exclude(state=IncidentState.DISMISSED).exclude(symptom=None).order_by()
    # The stubs take the column of a foreign key for a number.
    pairs: list[tuple[Any, Any]] = list(real.values_list("symptom_id").annotate(first=Min("opened_at")))
    return dict(pairs)


def _count_symptoms(
    incidents: QuerySet[Incident], known: dict[str, Symptom], new: set[str]
) -> tuple[SymptomCount, ...]:
    states: list[tuple[Any, str]] = list(incidents.values_list("symptom_id", "state"))
    num_opened: Counter[str | None] = Counter(code for code, _ in states)
    num_resolved = Counter(code for code, state in states if state == IncidentState.RESOLVED)
    order = sorted(num_opened, key=lambda code: (-num_opened[code], code is None, code or ""))
    return tuple(
        SymptomCount(
            code=code,
            symptom=name_symptom(known[code]) if code is not None else "",
            num_opened=num_opened[code],
            num_resolved=num_resolved[code],
            is_new=code in new,
        )
        for code in order
    )


def _list_repeated(quarter: Quarter) -> tuple[RepeatedSymptom, ...]:
    """Questions for a check that wait, with the occurrences in the window that ends with the quarter."""
    until_end = Incident.objects.filter(opened_at__lt=quarter.ends_at).exclude(state=IncidentState.DISMISSED)
    waiting = until_end.filter(asks_for_check=True, check_answer="", symptom__isnull=False).order_by("number")
    asking: dict[str, list[int]] = {}
    pairs: list[tuple[Any, int]] = list(waiting.values_list("symptom_id", "number"))
    for code, number in pairs:
        asking.setdefault(code, []).append(number)
    recent = until_end.filter(opened_at__gte=quarter.ends_at - RECURRENCE_WINDOW, symptom_id__in=asking)
    codes: list[Any] = list(recent.values_list("symptom_id", flat=True))
    num_occurrences = Counter(codes)
    return tuple(
        RepeatedSymptom(
            code=code, num_occurrences=num_occurrences[code], incidents=tuple(numbers[:MAX_LISTED])
        )
        for code, numbers in sorted(asking.items(), key=lambda item: (-num_occurrences[item[0]], item[0]))
    )


def _list_rows(rows: Iterable[Symptom]) -> tuple[ListedRow, ...]:
    ordered: Sequence[Symptom] = sorted(rows, key=lambda row: (row.position, row.code))
    return tuple(ListedRow(code=row.code, symptom=name_symptom(row)) for row in ordered[:MAX_LISTED])


def _list_incidents(incidents: QuerySet[Incident]) -> tuple[ListedIncident, ...]:
    return tuple(
        ListedIncident(number=row.number, title=row.title, state=row.state, symptom=row.symptom_id)
        for row in incidents[:MAX_LISTED]
    )
