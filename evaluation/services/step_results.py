"""Takes the results of check and merge jobs over into the adapter version; part of the pipeline.

Both are facts about the version and not about one run, so whichever run comes first stores them, whatever the
version's present state is.
"""

from typing import Any

from django.db import transaction

from evaluation.models import EvaluationRun
from evaluation.selectors.runs import CHECKED_KEY
from evaluation.services.run_states import fail_run, lock_run, record_version_facts
from registry.choices import FailureClass, VersionState
from registry.models import AdapterVersion, Job
from registry.services.actors import SYSTEM
from registry.services.adapters import set_version_state


def has_passed_check(version: AdapterVersion, form: str) -> bool:
    """Whether a check found the version sound for this serving form."""
    return form in version.summary.get(CHECKED_KEY, {})


def take_over_check(run: EvaluationRun, job: Job) -> None:
    """Stores what the check found. A faulty adapter ends the run, and makes the version invalid."""
    findings: list[dict[str, Any]] = job.values.get("findings", [])
    with transaction.atomic():
        locked = lock_run(run)
        version = locked.version
        if version is None or has_passed_check(version, locked.form):
            return
        if job.values.get("ok") is not True:
            errors = [finding for finding in findings if finding.get("severity") == "error"]
            failure = _refusal(version, errors)
            was_sound = bool(version.summary.get(CHECKED_KEY))
            fail_run(
                run=locked,
                failure=failure,
                actor=SYSTEM,
                # Sound in one form and not servable in another: the run fails, the version stays valid.
                version_state=VersionState.FAILED if was_sound else VersionState.INVALID,
                **({} if was_sound else {"findings": findings}),
            )
            return
        checks = {**version.summary.get(CHECKED_KEY, {}), locked.form: _made_by(job)}
        summary = {**version.summary, **job.values.get("summary", {}), CHECKED_KEY: checks}
        if version.state == VersionState.SUBMITTED:
            set_version_state(
                version=version,
                to_state=VersionState.CHECKED,
                actor=SYSTEM,
                findings=findings,
                summary=summary,
            )
        else:
            record_version_facts(version=version, findings=findings, summary=summary)


def take_over_merge(run: EvaluationRun, job: Job) -> None:
    """Stores the merged model of a version."""
    with transaction.atomic():
        locked = lock_run(run)
        version = locked.version
        if version is None or version.merged_artifact_id is not None:
            return
        if job.output_artifact_id is None:
            failure = {
                "failure_class": FailureClass.INTERNAL,
                "code": "merge-without-output",
                "message": f"The merge job {job.pk} succeeded without a merged model.",
                "details": [],
            }
            fail_run(run=locked, failure=failure, actor=SYSTEM)
            return
        columns: dict[str, Any] = {
            "merged_artifact": job.output_artifact,
            "summary": {**version.summary, "merge": {**_made_by(job), **job.values}},
        }
        if version.state == VersionState.CHECKED:
            set_version_state(version=version, to_state=VersionState.MERGED, actor=SYSTEM, **columns)
        else:
            record_version_facts(version=version, **columns)


def _made_by(job: Job) -> dict[str, Any]:
    return {"code_version": job.code_version, "job": str(job.pk)}


def _refusal(version: AdapterVersion, errors: list[dict[str, Any]]) -> dict[str, Any]:
    first = errors[0]["message"] if errors else "the check gave no reason"
    more = f" ({len(errors) - 1} more)" if len(errors) > 1 else ""
    return {
        "failure_class": FailureClass.USER,
        "code": "adapter-invalid",
        "message": f"{version} cannot be used: {first}{more}",
        "details": errors,
    }
