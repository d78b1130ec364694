"""Reads what a prepare job left and makes dataset versions of it, up to the point where rows are written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.artifacts.manifest import ArtifactFile, ArtifactManifest
from registry.choices import ArtifactKind, DatasetRole, FailureClass
from registry.errors import ConflictError, NotFoundError, PayloadTooLarge, ValidationFailed
from registry.models import Job
from registry.services.actors import SYSTEM
from registry.services.artifacts import get_file_entry, read_file_bytes, record_artifact
from registry.services.datasets import DATA_FILE, CheckedVersion, check_dataset_version
from registry.services.jobs.records import storable_json
from training.models import DataPreparation
from training.selectors.preparations import MAX_REPORT_BYTES, REPORT_FILE
from training.services.following import make_failure
from training.services.preparation_requests import dataset_name_of

SETS_FOLDER = "sets"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedOutput:
    """The sets of a finished job, checked line by line; the main set first."""

    sets: tuple[CheckedVersion, ...]


class SetsUnusable(Exception):
    """What the job left cannot be registered. `failure` is the preparation's, in the form of that column."""

    def __init__(self, failure: Mapping[str, Any]) -> None:
        super().__init__(str(failure["message"]))
        self.failure = failure


def check_output(preparation: DataPreparation, job: Job) -> PreparedOutput:
    """Stores each set as an artifact of its own, whose bytes are in the store already, and checks its lines.

    Raises:
        SetsUnusable: there is no report, a set is no valid dataset, or its dataset has another role by now.
        AssayError: the store fails; the look is to be repeated.
    """
    report = _read_report(job)
    roles = sorted(report["sets"], key=lambda role: (role != preparation.recipe["role"], role))
    try:
        return PreparedOutput(sets=tuple(_check_set(preparation, job, report, role) for role in roles))
    except NotFoundError as error:
        message = f"The output of job {job.pk} is not complete: {error.detail}"
        raise SetsUnusable(make_failure("prepared-incomplete", message)) from error
    except (ValidationFailed, ConflictError) as error:
        details = tuple(fault.to_json() for fault in error.faults)
        failure = make_failure(error.code, error.detail, failure_class=FailureClass.USER, details=details)
        raise SetsUnusable(failure) from error


def _read_report(job: Job) -> Mapping[str, Any]:
    if job.output_artifact_id is None:
        failure = make_failure("prepared-missing", f"Job {job.pk} succeeded without an output.")
        raise SetsUnusable(failure)
    try:
        content = read_file_bytes(digest=job.output_artifact_id, path=REPORT_FILE, max_bytes=MAX_REPORT_BYTES)
        report = json.loads(content)
        sets = report["sets"]
        is_sound = bool(sets) and all(role in DatasetRole.values for role in sets)
    except (NotFoundError, PayloadTooLarge, ValueError, KeyError, TypeError) as error:
        failure = make_failure("report-unreadable", f"The report of job {job.pk} cannot be read: {error}")
        raise SetsUnusable(failure) from error
    if not is_sound:
        raise SetsUnusable(make_failure("report-unreadable", f"The report of job {job.pk} names no sets."))
    document: Mapping[str, Any] = report
    return document


def _check_set(
    preparation: DataPreparation, job: Job, report: Mapping[str, Any], role: str
) -> CheckedVersion:
    digest = str(job.output_artifact_id)
    entry = get_file_entry(digest=digest, path=f"{SETS_FOLDER}/{role}.jsonl")
    manifest = ArtifactManifest.of([ArtifactFile(DATA_FILE, entry.size_bytes, entry.sha256)])
    artifact = record_artifact(manifest=manifest, kind=ArtifactKind.DATASET, actor=SYSTEM)
    return check_dataset_version(
        name=dataset_name_of(preparation.name, role, main_role=preparation.recipe["role"]),
        role=role,
        artifact_digest=artifact.digest,
        card=_lineage(preparation, report) | storable_json(report["sets"][role].get("card") or {}),
    )


def _lineage(preparation: DataPreparation, report: Mapping[str, Any]) -> dict[str, Any]:
    """Where a set comes from; each of these can be followed to its bytes."""
    raw = preparation.raw
    return {
        "preparation": str(preparation.pk),
        "raw": {"id": str(raw.pk), "name": raw.name, "artifact": raw.artifact_id},
        "recipe_digest": report.get("recipe_digest"),
        "code_version": report.get("code_version"),
    }
