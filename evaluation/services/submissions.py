"""Submissions: an adapter version on its way to a decision. Begins, cancels and repeats them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from evaluation.choices import RunState, RunSubject
from evaluation.errors import EvaluationConflict, SubmissionInvalid
from evaluation.models import EvaluationRun, Policy, SuiteVersion
from evaluation.selectors.policies import DEFAULT_POLICY_NAME, get_policy
from evaluation.selectors.runs import get_submission, state_of_submission
from evaluation.selectors.suites import get_suite_version
from evaluation.services.baselines import restart_run
from evaluation.services.job_requests import shipping_form
from evaluation.services.pipeline import advance_run
from evaluation.services.run_states import ACTIVE_STATES, cancel_run, lock_run, restart_version
from registry.choices import TRAINING_ROLES, ArtifactKind, TokenScope, VersionState
from registry.errors import ConflictError, Fault
from registry.models import AdapterVersion, DatasetVersion, Job
from registry.selectors.base_models import get_base_model
from registry.selectors.datasets import get_dataset_version
from registry.services.actors import Actor
from registry.services.adapters import submit_version
from registry.services.artifacts import get_artifact
from registry.services.audit import record_audit
from registry.services.jobs import request_cancel
from registry.services.lookups import look_up
from registry.services.names import find_name_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A submission, and whether it was made just now."""

    run: EvaluationRun
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionRequest:
    """What a client asks for.

    Attributes:
        adapter_name: Name of the adapter; a new one is made.
        artifact_digest: Digest of the uploaded adapter.
        base_model_name: Name of a registered base model.
        suite: "name" (newest) or "name@number".
        policy: The same for the policy.
        training_datasets: "name@number" of what the adapter was trained on; without any, leakage cannot be
            checked.
        notes: Free text.
    """

    adapter_name: str
    artifact_digest: str
    base_model_name: str
    suite: str
    policy: str = DEFAULT_POLICY_NAME
    training_datasets: Sequence[str] = ()
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """What a request names, looked up; `training_datasets` as sorted "name@number"."""

    suite_version: SuiteVersion
    policy: Policy
    training_datasets: list[str]


def submit(*, request: SubmissionRequest, actor: Actor) -> Submitted:
    """Begins the way of an adapter to a decision, or returns the submission of the same bytes, suite and
    policy.

    Raises:
        ScopeError: the actor may not submit to this adapter.
        SubmissionInvalid: with every fault at once (code `submission-invalid`).
        ConflictError: the same bytes were submitted with other training data (code `training-data-differs`).
    """
    actor.require(TokenScope.SUBMIT, request.adapter_name)
    named = _require_valid(request)
    with transaction.atomic():
        version, _ = submit_version(
            adapter_name=request.adapter_name,
            artifact_digest=request.artifact_digest,
            base_model_name=request.base_model_name,
            training_datasets=named.training_datasets,
            notes=request.notes,
            actor=actor,
        )
        version = AdapterVersion.objects.select_for_update().get(pk=version.pk)
        _require_same_training_data(version, named)
        run, is_new = _get_or_create_run(version, named, request.notes, actor)
    advance_run(run_id=run.pk)
    return Submitted(run=get_submission(run.pk), is_new=is_new)


def cancel_submission(*, run: EvaluationRun, actor: Actor, reason: str = "") -> EvaluationRun:
    """Ends a submission that has no results yet; its job is cancelled unless another run waits for it too.

    Raises:
        ScopeError: the actor may not submit to this adapter.
        EvaluationConflict: the submission has come to its end, or only waits for its decision.
    """
    with transaction.atomic():
        locked = lock_run(run)
        if locked.version is not None:
            actor.require(TokenScope.SUBMIT, locked.version.adapter.name)
        if locked.state not in (RunState.PENDING, RunState.RUNNING):
            raise EvaluationConflict("submission-final", state=state_of_submission(get_submission(run.pk)))
        cancel_run(run=locked, actor=actor, reason=reason or "Cancelled on request.")
        job = locked.job
        if job is not None and not _is_awaited(job):
            request_cancel(job=job, actor=actor)
    return get_submission(run.pk)


def retry_submission(*, run: EvaluationRun, actor: Actor) -> EvaluationRun:
    """Begins a failed or cancelled submission again, with its baseline if that failed; finished steps are
    looked up.

    Raises:
        ScopeError: the actor may not submit to this adapter.
        EvaluationConflict: it is in another state, or the adapter itself is invalid.
    """
    with transaction.atomic():
        locked = lock_run(run)
        version = locked.version
        if version is None:
            raise EvaluationConflict("submission-not-retryable", state=locked.state)
        actor.require(TokenScope.SUBMIT, version.adapter.name)
        is_ended = locked.state in (RunState.FAILED, RunState.CANCELLED)
        if not is_ended or version.state == VersionState.INVALID:
            raise EvaluationConflict(
                "submission-not-retryable", state=state_of_submission(get_submission(run.pk))
            )
        restart_run(run=locked, actor=actor)
        restart_version(run=locked, actor=actor)
    advance_run(run_id=run.pk)
    return get_submission(run.pk)


def _require_valid(request: SubmissionRequest) -> _Named:
    faults: list[Fault] = []
    if (fault := find_name_fault(request.adapter_name, where="/adapter")) is not None:
        faults.append(fault)
    look_up(faults, "/artifact", lambda: _require_adapter_artifact(request.artifact_digest))
    look_up(faults, "/base_model", lambda: get_base_model(request.base_model_name))
    suite_version = look_up(faults, "/suite", lambda: get_suite_version(reference=request.suite))
    policy = look_up(faults, "/policy", lambda: get_policy(reference=request.policy))
    datasets = [
        _find_training_dataset(faults, reference, f"/training_dataset/{index}")
        for index, reference in enumerate(request.training_datasets)
    ]
    if faults or suite_version is None or policy is None:
        raise SubmissionInvalid("submission-invalid", faults=faults)
    training_datasets = sorted({str(item) for item in datasets if item is not None})
    return _Named(suite_version=suite_version, policy=policy, training_datasets=training_datasets)


def _require_adapter_artifact(digest: str) -> None:
    artifact = get_artifact(digest)
    if artifact.kind != ArtifactKind.ADAPTER:
        expected = ArtifactKind.ADAPTER.value
        raise ConflictError("artifact-kind-differs", digest=digest, kind=artifact.kind, expected=expected)


def _find_training_dataset(faults: list[Fault], reference: str, where: str) -> DatasetVersion | None:
    version = look_up(faults, where, lambda: get_dataset_version(reference, where=where))
    if version is not None and version.dataset.role not in TRAINING_ROLES:
        roles = " or ".join(TRAINING_ROLES)
        message = f"{version} has role {version.dataset.role!r}; training data has role {roles}."
        faults.append(Fault(code="dataset-role-differs", message=message, where=where))
    return version


def _require_same_training_data(version: AdapterVersion, named: _Named) -> None:
    """A version's training data is part of what was judged; other data later would change it unseen."""
    known = sorted(str(item) for item in version.training_datasets.select_related("dataset"))
    if named.training_datasets and named.training_datasets != known:
        raise EvaluationConflict(
            "training-data-differs", version=str(version), known=", ".join(known) or "no training data"
        )


def _get_or_create_run(
    version: AdapterVersion, named: _Named, notes: str, actor: Actor
) -> tuple[EvaluationRun, bool]:
    """The run of a locked version; the lock keeps a second one from being made at the same time."""
    existing = EvaluationRun.objects.filter(
        subject=RunSubject.CANDIDATE,
        version=version,
        suite_version=named.suite_version,
        policy=named.policy,
    ).first()
    if existing is not None:
        return existing, False
    run = EvaluationRun.objects.create(
        subject=RunSubject.CANDIDATE,
        base_model=version.base_model,
        version=version,
        suite_version=named.suite_version,
        policy=named.policy,
        form=shipping_form(named.suite_version),
        notes=notes,
        created_by=actor.user,
    )
    restart_version(run=run, actor=actor)
    record_audit(
        actor=actor,
        action="submission.create",
        target=run,
        after={
            "version": str(version),
            "suite": str(named.suite_version),
            "policy": str(named.policy),
        },
    )
    return run, True


def _is_awaited(job: Job) -> bool:
    return EvaluationRun.objects.filter(job=job, state__in=ACTIVE_STATES).exists()
