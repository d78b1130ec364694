"""States and kinds of the evaluation app."""

from collections.abc import Mapping

from django.db.models import TextChoices


class RunSubject(TextChoices):
    """Whose outputs a run holds."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


class RunState(TextChoices):
    """Life of an evaluation run."""

    PENDING = "pending"
    RUNNING = "running"
    SCORED = "scored"
    DECIDED = "decided"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_RUN_STATES: frozenset[str] = frozenset({RunState.DECIDED, RunState.FAILED, RunState.CANCELLED})

RUN_TRANSITIONS: Mapping[str, frozenset[str]] = {
    RunState.PENDING: frozenset({RunState.RUNNING, RunState.SCORED, RunState.FAILED, RunState.CANCELLED}),
    RunState.RUNNING: frozenset({RunState.SCORED, RunState.FAILED, RunState.CANCELLED}),
    RunState.SCORED: frozenset({RunState.DECIDED, RunState.FAILED}),
    RunState.DECIDED: frozenset(),
    RunState.FAILED: frozenset({RunState.PENDING}),
    RunState.CANCELLED: frozenset({RunState.PENDING}),
}


class Verdict(TextChoices):
    """What the rules say (DESIGN section 5)."""

    PASSED = "passed"
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"


class TriageState(TextChoices):
    """Life of a triage. `sorted`: the rules have sorted the failures, and people confirm them."""

    QUEUED = "queued"
    RUNNING = "running"
    SORTED = "sorted"
    CLOSED = "closed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE_TRIAGE_STATES: frozenset[str] = frozenset({TriageState.QUEUED, TriageState.RUNNING})

TRIAGE_TRANSITIONS: Mapping[str, frozenset[str]] = {
    TriageState.QUEUED: frozenset(
        {TriageState.RUNNING, TriageState.SORTED, TriageState.FAILED, TriageState.CANCELLED}
    ),
    # A job that its worker lost waits again.
    TriageState.RUNNING: frozenset(
        {TriageState.QUEUED, TriageState.SORTED, TriageState.FAILED, TriageState.CANCELLED}
    ),
    TriageState.SORTED: frozenset({TriageState.CLOSED}),
    TriageState.CLOSED: frozenset(),
    TriageState.FAILED: frozenset(),
    TriageState.CANCELLED: frozenset(),
}
