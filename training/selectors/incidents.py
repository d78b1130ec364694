"""Reads the incident register."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import QuerySet

from training.choices import CheckAnswer, IncidentState
from training.errors import TrainingNotFound
from training.models import Incident, IncidentEntry, TrainingRun

RECURRENCE_WINDOW: Final = timedelta(days=180)
"""Two incidents of one symptom within half a year are a recurrence (MISSION T6), whatever base or data."""

_REVISION: Final = re.compile(r"r(0|[1-9][0-9]{0,8})")
_COUNT_WORDS: Final = {1: "once", 2: "twice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """How often a symptom has occurred up to an incident and with it.

    Attributes:
        num_occurrences: Within the window, dismissed incidents left out; the incident itself counts.
        made_in: Number of the latest earlier incident for which a check was made, however long ago; None
            without one. The symptom came back all the same.
        declined_in: Number of the latest earlier incident within the window for which a check was declined.
    """

    num_occurrences: int
    made_in: int | None
    declined_in: int | None

    @property
    def asks_for_check(self) -> bool:
        """Whether somebody is to be asked for a check: not at the first time, nor again soon after a no."""
        return self.num_occurrences > 1 and self.declined_in is None


def list_incidents(
    *,
    state: str | None = None,
    symptom: str | None = None,
    asks_for_check: bool | None = None,
    run: TrainingRun | None = None,
) -> QuerySet[Incident]:
    """Incidents, newest first.

    Args:
        state: Only those in this state.
        symptom: Only those of this row of the handbook; "" for those without a row.
        asks_for_check: Only those whose question for a check waits for an answer (True), or does not.
        run: Only those of this training run.
    """
    rows = Incident.objects.select_related("symptom", "training_run__base_model", "created_by", "check_by")
    rows = rows.prefetch_related("symptom__texts").order_by("-number")
    if state is not None:
        rows = rows.filter(state=state)
    if symptom is not None:
        rows = rows.filter(symptom_id=symptom) if symptom else rows.filter(symptom=None)
    if asks_for_check is not None:
        waiting = {"asks_for_check": True, "check_answer": ""}
        rows = rows.filter(**waiting) if asks_for_check else rows.exclude(**waiting)
    return rows if run is None else rows.filter(training_run=run)


def get_incident(number: int) -> Incident:
    """One incident.

    Raises:
        TrainingNotFound: there is none of this number.
    """
    row = list_incidents().filter(number=number).first()
    if row is None:
        raise TrainingNotFound("incident-not-found", number=number)
    return row


def list_entries(incident: Incident) -> QuerySet[IncidentEntry]:
    """The log of an incident, the oldest first."""
    return incident.entries.order_by("pk")


def find_recurrence(symptom: str, *, at: datetime, before: int | None = None) -> Recurrence:
    """How often a symptom has occurred up to a time.

    Args:
        symptom: Code of its row.
        at: End of the window: when the incident in question was opened.
        before: Number of that incident, None for one that is not stored yet.
    """
    earlier = Incident.objects.filter(symptom_id=symptom, opened_at__lte=at)
    if before is not None:
        earlier = earlier.filter(number__lt=before)
    earlier = earlier.exclude(state=IncidentState.DISMISSED).order_by("-number")
    recent = earlier.filter(opened_at__gt=at - RECURRENCE_WINDOW)
    made, declined = (
        rows.filter(check_answer=answer).values_list("number", flat=True).first()
        for rows, answer in ((earlier, CheckAnswer.MADE), (recent, CheckAnswer.DECLINED))
    )
    return Recurrence(num_occurrences=recent.count() + 1, made_in=made, declined_in=declined)


def word_check_question(incident: Incident) -> str | None:
    """What people are asked when the incident's symptom recurs; None when nothing is asked."""
    if not incident.asks_for_check or incident.symptom_id is None:
        return None
    found = find_recurrence(incident.symptom_id, at=incident.opened_at, before=incident.number)
    times = _COUNT_WORDS.get(found.num_occurrences, f"{found.num_occurrences} times")
    question = (
        f"This symptom occurred {times} within {RECURRENCE_WINDOW.days} days: make it a check"
        " (lint rule, preflight check, policy rule)."
    )
    if found.made_in is None:
        return question
    return f"{question} The check that was made after incident #{found.made_in} did not stop it."


def current_fields(incident: Incident) -> Mapping[str, Any]:
    """What people may edit of an incident, as it stands."""
    return {
        "title": incident.title,
        "symptom": incident.symptom_id,
        "first_step": incident.first_step,
        "evaluation_run": incident.evaluation_run,
        "found": incident.found,
        "cause": incident.cause,
        "fix": incident.fix,
    }


def revision_of_etag(etag: str) -> int | None:
    """The revision that an ETag names; None for a text that is no ETag of an incident."""
    found = _REVISION.fullmatch(etag)
    return int(found.group(1)) if found else None


def incident_etag(incident: Incident) -> str:
    """The incident's ETag without quotes: `r` and its revision."""
    return f"r{incident.revision}"
