"""What rows have in common whose state follows one job: training runs and data preparations.

A change of state is a compare-and-set along the row's table of transitions, with an audit row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import models
from django.utils import timezone

from registry.choices import FailureClass, JobState
from registry.errors import IllegalTransition
from registry.models import Job
from registry.services.actors import SYSTEM, Actor
from registry.services.audit import record_audit

Row = TypeVar("Row", bound=models.Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRules:
    """How the state of one kind of row changes.

    Attributes:
        noun: For messages, such as "Training run".
        action: First part of the audit action, such as "training".
        transitions: State to the states that may follow it. The states `queued`, `running`, `failed` and
            `cancelled` mean what they mean for a job.
    """

    noun: str
    action: str
    transitions: Mapping[str, frozenset[str]]


def change_state(
    row: models.Model, to_state: str, actor: Actor, *, rules: StateRules, **columns: Any
) -> None:
    """Moves a row from the state in which it was read to another, and sets columns with it.

    Call it inside a transaction.

    Raises:
        IllegalTransition: the table does not allow it, or the row is in another state by now.
    """
    from_state: str = row.state  # type: ignore[attr-defined]  # every followed row has one
    facts: dict[str, Any] = {
        "object_name": f"{rules.noun} {row.pk}",
        "from_state": str(from_state),
        "to_state": str(to_state),
    }
    if to_state not in rules.transitions[from_state]:
        raise IllegalTransition("illegal-transition", **facts)
    rows = type(row)._default_manager.filter(pk=row.pk, state=from_state)
    if not rows.update(state=to_state, **columns):
        raise IllegalTransition("state-changed", **facts)
    row.state = to_state  # type: ignore[attr-defined]
    record_audit(
        actor=actor,
        action=f"{rules.action}.{to_state}",
        target=row,
        before={"state": str(from_state)},
        after={"state": str(to_state)},
    )


def copy_job_state(
    row: Row, job: Job | None, *, rules: StateRules, on_success: Callable[[Row, Job], None]
) -> None:
    """Brings a row that has not ended to the state of its job. Call it inside a transaction, the row locked.

    Args:
        row: Just read.
        job: Its job; None when that does not exist any more, which fails the row.
        rules: Of the row's kind.
        on_success: Takes over what a succeeded job gave, and changes the row's state.
    """
    if job is None:
        failure = make_failure("job-missing", "The job does not exist any more.")
        change_state(row, JobState.FAILED, SYSTEM, rules=rules, failure=failure, finished_at=timezone.now())
        return
    match job.state:
        case JobState.QUEUED | JobState.RUNNING:
            if row.state != job.state:  # type: ignore[attr-defined]
                change_state(row, job.state, SYSTEM, rules=rules)
        case JobState.SUCCEEDED:
            on_success(row, job)
        case JobState.FAILED:
            failure = job.failure or make_failure("job-failed", f"Job {job.pk} failed.")
            change_state(
                row, JobState.FAILED, SYSTEM, rules=rules, failure=failure, finished_at=job.finished_at
            )
        case JobState.CANCELLED:
            change_state(row, JobState.CANCELLED, SYSTEM, rules=rules, finished_at=job.finished_at)


def make_failure(
    code: str,
    message: str,
    *,
    failure_class: str = FailureClass.INTERNAL,
    details: tuple[Mapping[str, Any], ...] = (),
) -> dict[str, Any]:
    """A failure as it stands in the column of that name; of the class `internal` it is nobody's input."""
    return {
        "failure_class": str(failure_class),
        "code": code,
        "message": message,
        "details": [dict(detail) for detail in details],
    }
