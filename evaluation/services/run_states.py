"""Changes the state of runs, and lets the state of an adapter version follow its newest run.

Every change is a compare-and-set with an audit row. A run's own state is the truth about that run; the
version's state is a summary for people and filters, because one version may be evaluated several times.
"""

import logging
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from evaluation.choices import RUN_TRANSITIONS, RunState
from evaluation.models import EvaluationRun
from evaluation.selectors.runs import CHECKED_KEY
from registry.choices import VERDICT_STATES, VERSION_TRANSITIONS, VersionState
from registry.errors import IllegalTransition
from registry.models import AdapterVersion
from registry.services.actors import Actor
from registry.services.adapters import set_version_state
from registry.services.audit import record_audit

logger = logging.getLogger(__name__)

ACTIVE_STATES: tuple[str, ...] = (RunState.PENDING, RunState.RUNNING, RunState.SCORED)
_LIVE_STATES: tuple[str, ...] = (*ACTIVE_STATES, RunState.DECIDED)


def lock_run(run: EvaluationRun) -> EvaluationRun:
    """The run read again under a row lock, with its version read after that. Call it in a transaction."""
    locked = EvaluationRun.objects.select_for_update().get(pk=run.pk)
    if locked.version_id is not None:
        locked.version = AdapterVersion.objects.select_for_update().get(pk=locked.version_id)
    return locked


def move_run(
    *, run: EvaluationRun, to_state: str, actor: Actor, reason: str = "", **columns: Any
) -> EvaluationRun:
    """Changes a run's state, and other columns with it; call it in a transaction.

    Raises:
        IllegalTransition: the table does not allow it, or another change came first.
    """
    from_state = run.state
    if to_state not in RUN_TRANSITIONS[from_state]:
        raise IllegalTransition(
            "illegal-transition", object_name=f"Run {run.pk}", from_state=from_state, to_state=to_state
        )
    changed = EvaluationRun.objects.filter(pk=run.pk, state=from_state).update(state=to_state, **columns)
    if not changed:
        raise IllegalTransition("state-changed", object_name=f"Run {run.pk}", from_state=from_state)
    run.state = to_state
    for name, value in columns.items():
        setattr(run, name, value)
    record_audit(
        actor=actor,
        action=f"run.{to_state}",
        target=run,
        before={"state": from_state},
        after={"state": to_state},
        reason=reason,
    )
    return run


def fail_run(
    *,
    run: EvaluationRun,
    failure: Mapping[str, Any],
    actor: Actor,
    version_state: str = VersionState.FAILED,
    **version_columns: Any,
) -> None:
    """Ends a locked run without a decision.

    Args:
        run: The run, locked.
        failure: {"failure_class", "code", "message", "details"}, as in a job's result.
        actor: For the audit log.
        version_state: What becomes of a version that follows this run: `failed`, or `invalid` when the
            adapter itself is at fault (all runs of the version end then).
        version_columns: Further columns of the version that change with its state.
    """
    document = dict(failure)
    move_run(
        run=run,
        to_state=RunState.FAILED,
        actor=actor,
        reason=str(document.get("message", "")),
        failure=document,
        finished_at=timezone.now(),
    )
    if run.version is None or run.version.state == VersionState.INVALID:
        return
    if version_state == VersionState.INVALID and _may_become(run.version, VersionState.INVALID):
        set_version_state(
            version=run.version,
            to_state=VersionState.INVALID,
            actor=actor,
            failure=document,
            **version_columns,
        )
    elif not _has_other_active_run(run):
        follow_run(run=run, to_state=VersionState.FAILED, actor=actor, failure=document, **version_columns)


def cancel_run(*, run: EvaluationRun, actor: Actor, reason: str) -> None:
    """Ends a locked run because somebody asked for it."""
    move_run(run=run, to_state=RunState.CANCELLED, actor=actor, reason=reason, finished_at=timezone.now())
    if run.version is not None and not _has_other_active_run(run):
        follow_run(run=run, to_state=VersionState.CANCELLED, actor=actor)


def follow_run(*, run: EvaluationRun, to_state: str, actor: Actor, **columns: Any) -> None:
    """Moves the version of a locked run to `to_state`, if the run is the one that the version follows.

    That is the newest run that was neither cancelled nor failed. A version that skipped `evaluated`, because
    it followed another run at that time, passes through it.
    """
    version = run.version
    if version is None or not _is_followed(run) or version.state == to_state:
        return
    if to_state in VERDICT_STATES and _may_become(version, VersionState.EVALUATED):
        version = set_version_state(version=version, to_state=VersionState.EVALUATED, actor=actor)
    if not _may_become(version, to_state):
        logger.warning(
            "version %s stays %s; run %s would make it %s", version, version.state, run.pk, to_state
        )
        return
    run.version = set_version_state(version=version, to_state=to_state, actor=actor, **columns)


def record_version_facts(*, version: AdapterVersion, **columns: Any) -> None:
    """Stores what a job found out about a locked version whose state does not change by it."""
    for name, value in columns.items():
        setattr(version, name, value)
    version.save(update_fields=list(columns))


def restart_version(*, run: EvaluationRun, actor: Actor) -> None:
    """Brings the version of a run that begins back from its end to the last step whose result is still there.

    Nothing happens to a version that is on its way, is invalid, or follows a newer run.
    """
    version = run.version
    ended = VERDICT_STATES | {VersionState.FAILED, VersionState.CANCELLED}
    if version is None or version.state not in ended or not _is_followed(run):
        return
    if version.merged_artifact_id is not None:
        to_state = VersionState.MERGED
    else:
        to_state = VersionState.CHECKED if version.summary.get(CHECKED_KEY) else VersionState.SUBMITTED
    run.version = set_version_state(version=version, to_state=to_state, actor=actor, failure=None)


def _may_become(version: AdapterVersion, to_state: str) -> bool:
    return to_state in VERSION_TRANSITIONS[version.state]


def _other_runs(run: EvaluationRun) -> QuerySet[EvaluationRun]:
    return EvaluationRun.objects.filter(version_id=run.version_id).exclude(pk=run.pk)


def _is_followed(run: EvaluationRun) -> bool:
    newer = _other_runs(run).filter(created_at__gt=run.created_at, state__in=_LIVE_STATES)
    return not newer.exists()


def _has_other_active_run(run: EvaluationRun) -> bool:
    return _other_runs(run).filter(state__in=ACTIVE_STATES).exists()
