"""What the pages of rows share whose state follows a job: the job's progress and its log."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.http import JsonResponse

from registry.choices import ACTIVE_JOB_STATES, JobEventType
from registry.models import Job
from registry.selectors.jobs import list_latest_job_events
from registry.visible_text import visible_text

NUM_READ_EVENTS: Final = 400


def find_active_job(job: Job | None) -> Job | None:
    """The job while it waits or runs, else None."""
    return job if job is not None and job.state in ACTIVE_JOB_STATES else None


def job_context(job: Job | None) -> dict[str, Any]:
    """What the templates `admin/training/_live_job.html` and `_job_log.html` show."""
    active = find_active_job(job)
    return {
        "job": active,
        "job_percent": round(100 * active.fraction) if active else 0,
        "events": _shown_events(job),
    }


def status_answer(state: str, job: Job | None) -> JsonResponse:
    """What `live_status.js` asks for."""
    active = find_active_job(job)
    shown = None
    if active is not None:
        shown = {
            "kind": active.kind,
            "state": active.state,
            "fraction": active.fraction,
            "message": active.message,
        }
    return JsonResponse({"state": state, "is_final": active is None, "job": shown})


def flat_rows(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as (dotted name, value) rows."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat_rows(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{name}", ", ".join(_item_text(item) for item in value)
        else:
            yield f"{prefix}{name}", "-" if value is None else str(value)


def _item_text(item: Any) -> str:
    return json.dumps(item, ensure_ascii=False) if isinstance(item, Mapping | list | tuple) else str(item)


def _shown_events(job: Job | None) -> list[dict[str, object]]:
    if job is None:
        return []
    events = list_latest_job_events(job=job, limit=NUM_READ_EVENTS)
    return [
        {"at": event.at, "level": event.level or event.type, "message": visible_text(event.message)}
        for event in events
        if event.type not in (JobEventType.METRIC, JobEventType.RECORD)
    ]
