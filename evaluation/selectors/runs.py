"""Reads evaluation runs: submissions (candidate runs), baselines and their examples."""

import uuid
from collections.abc import Collection

from django.db.models import Case, CharField, F, Q, QuerySet, Value, When

from evaluation.choices import RunState, RunSubject
from evaluation.errors import EvaluationNotFound
from evaluation.models import EvaluationRun, ExampleResult
from registry.choices import VersionState

ACTIVE_RUN_STATES: tuple[str, ...] = (RunState.PENDING, RunState.RUNNING)
"""States in which a run waits for a job. A scored candidate only waits for its decision, which needs no
job.
"""

CHECKED_KEY = "checks"
"""Key of `AdapterVersion.summary` that the pipeline sets once a check found the adapter sound."""

_SHOWN_RELATIONS = (
    "version__adapter",
    "version__base_model",
    "base_model",
    "suite_version__suite",
    "policy",
    "job",
    "baseline__job",
    "decision__policy",
    "created_by",
)


def submission_state() -> Case:
    """The state of a submission as clients see it, a `VersionState`.

    It is derived from the run and not read from the version, because a version that is evaluated again
    (another suite or policy) has several submissions, each with an outcome of its own.
    """
    return Case(
        When(state=RunState.DECIDED, then=F("decision__verdict")),
        When(state=RunState.CANCELLED, then=Value(VersionState.CANCELLED.value)),
        When(
            state=RunState.FAILED, version__state=VersionState.INVALID, then=Value(VersionState.INVALID.value)
        ),
        When(state=RunState.FAILED, then=Value(VersionState.FAILED.value)),
        When(state=RunState.SCORED, then=Value(VersionState.EVALUATED.value)),
        When(version__merged_artifact__isnull=False, then=Value(VersionState.MERGED.value)),
        When(Q(version__summary__has_key=CHECKED_KEY), then=Value(VersionState.CHECKED.value)),
        default=Value(VersionState.SUBMITTED.value),
        output_field=CharField(),
    )


def list_submissions(
    *,
    state: str | None = None,
    adapter_name: str | None = None,
    adapter_names: Collection[str] | None = None,
) -> QuerySet[EvaluationRun]:
    """Candidate runs, newest first; each has `submission_state`.

    Args:
        state: A `VersionState`; None does not filter.
        adapter_name: Name of one adapter; None does not filter.
        adapter_names: Adapters that the asker is limited to; None means all.
    """
    runs = (
        EvaluationRun.objects.filter(subject=RunSubject.CANDIDATE)
        .select_related(*_SHOWN_RELATIONS)
        .annotate(submission_state=submission_state())
    )
    if state is not None:
        runs = runs.filter(submission_state=state)
    if adapter_name is not None:
        runs = runs.filter(version__adapter__name=adapter_name)
    if adapter_names is not None:
        runs = runs.filter(version__adapter__name__in=adapter_names)
    return runs


def get_submission(run_id: uuid.UUID) -> EvaluationRun:
    """One candidate run, as `list_submissions` gives it.

    Raises:
        EvaluationNotFound: there is none of this id.
    """
    run = list_submissions().filter(pk=run_id).first()
    if run is None:
        raise EvaluationNotFound("submission-not-found", run_id=str(run_id))
    return run


def state_of_submission(run: EvaluationRun) -> str:
    """The `VersionState` of a run that came from `list_submissions`, `get_submission` or `get_run`."""
    return str(vars(run)["submission_state"])


def get_run(run_id: uuid.UUID) -> EvaluationRun | None:
    """One run of either kind with everything that a page shows of it; None when there is none of this id."""
    runs = EvaluationRun.objects.select_related(*_SHOWN_RELATIONS).annotate(
        submission_state=submission_state()
    )
    return runs.filter(pk=run_id).first()


def list_baselines() -> QuerySet[EvaluationRun]:
    """All baseline runs, newest first."""
    return EvaluationRun.objects.filter(subject=RunSubject.BASELINE).select_related(
        "base_model", "suite_version__suite", "job"
    )


def get_baseline(run_id: uuid.UUID) -> EvaluationRun:
    """One baseline run.

    Raises:
        EvaluationNotFound: there is none of this id.
    """
    run = list_baselines().filter(pk=run_id).first()
    if run is None:
        raise EvaluationNotFound("baseline-not-found", run_id=str(run_id))
    return run


def list_unfinished_run_ids() -> list[uuid.UUID]:
    """The ids of all runs that may be able to go on, oldest first."""
    waiting = Q(state__in=ACTIVE_RUN_STATES) | Q(state=RunState.SCORED, subject=RunSubject.CANDIDATE)
    return list(EvaluationRun.objects.filter(waiting).order_by("created_at").values_list("pk", flat=True))


def list_run_ids_of_job(job_id: uuid.UUID) -> list[uuid.UUID]:
    """The ids of the runs that wait for a job, oldest first."""
    return list(
        EvaluationRun.objects.filter(job_id=job_id).order_by("created_at").values_list("pk", flat=True)
    )


def list_waiting_candidate_ids(baseline_id: uuid.UUID) -> list[uuid.UUID]:
    """The ids of the candidate runs that wait for a baseline run, oldest first."""
    runs = EvaluationRun.objects.filter(baseline_id=baseline_id, state__in=ACTIVE_RUN_STATES)
    return list(runs.order_by("created_at").values_list("pk", flat=True))


def list_examples(run: EvaluationRun) -> QuerySet[ExampleResult]:
    """The example results of a run in the order of its report."""
    return ExampleResult.objects.filter(run=run).order_by("position")
