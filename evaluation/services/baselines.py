"""Baseline runs: the base model with its best prompt on a suite, shared by every candidate of that base and
suite.
"""

from django.db import IntegrityError, transaction

from evaluation.choices import RunState, RunSubject
from evaluation.models import EvaluationRun, SuiteVersion
from evaluation.services.run_states import lock_run, move_run
from registry.choices import TokenScope
from registry.models import BaseModel
from registry.services.actors import Actor
from registry.services.audit import record_audit

BASE_FORM = "base"


@transaction.atomic
def ensure_baseline(*, base_model: BaseModel, suite_version: SuiteVersion, actor: Actor) -> EvaluationRun:
    """The baseline run of a base model on a suite; made when there is none, begun again when it failed or was
    cancelled.

    It only makes the row; `pipeline.advance_run` does the work.

    Raises:
        ScopeError: the actor may not evaluate.
    """
    actor.require(TokenScope.EVALUATE)
    run = _find(base_model, suite_version) or _create(base_model, suite_version, actor)
    if run.state in (RunState.FAILED, RunState.CANCELLED):
        locked = lock_run(run)
        if locked.state in (RunState.FAILED, RunState.CANCELLED):
            run = restart_run(run=locked, actor=actor)
    return run


def restart_run(*, run: EvaluationRun, actor: Actor) -> EvaluationRun:
    """Puts a locked failed or cancelled run back to its beginning; what its jobs achieved is looked up, not
    repeated.
    """
    return move_run(
        run=run,
        to_state=RunState.PENDING,
        actor=actor,
        reason="Begun again.",
        job=None,
        baseline=None,
        failure=None,
        finished_at=None,
    )


def _find(base_model: BaseModel, suite_version: SuiteVersion) -> EvaluationRun | None:
    return EvaluationRun.objects.filter(
        subject=RunSubject.BASELINE, base_model=base_model, suite_version=suite_version
    ).first()


def _create(base_model: BaseModel, suite_version: SuiteVersion, actor: Actor) -> EvaluationRun:
    try:
        with transaction.atomic():
            run = EvaluationRun.objects.create(
                subject=RunSubject.BASELINE,
                base_model=base_model,
                suite_version=suite_version,
                form=BASE_FORM,
                created_by=actor.user,
            )
    except IntegrityError:
        # Another request made it between our look and our insert.
        return EvaluationRun.objects.get(
            subject=RunSubject.BASELINE, base_model=base_model, suite_version=suite_version
        )
    record_audit(
        actor=actor,
        action="baseline.create",
        target=run,
        after={"base_model": base_model.name, "suite": str(suite_version)},
    )
    return run
