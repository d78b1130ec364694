"""Datasets: named lines of immutable, checked versions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F

from registry.artifacts.dataset_lines import DatasetSummary, check_dataset_lines
from registry.artifacts.findings import shown_list
from registry.choices import DatasetRole, TokenScope
from registry.errors import ConflictError, Fault, ValidationFailed
from registry.models import Artifact, Dataset, DatasetVersion
from registry.services.actors import Actor
from registry.services.artifacts import get_artifact, get_store, manifest_of
from registry.services.audit import record_audit
from registry.services.names import require_name

DATA_FILE = "data.jsonl"
SCOPES = (TokenScope.SUBMIT.value, TokenScope.EVALUATE.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedVersion:
    """A dataset version whose every line was read and found sound, not yet stored."""

    name: str
    role: str
    artifact: Artifact
    summary: DatasetSummary
    card: Mapping[str, Any]


def ensure_dataset(*, name: str, role: str, actor: Actor) -> tuple[Dataset, bool]:
    """The dataset of that name, made when it is new.

    Returns:
        The dataset, and whether it is new.

    Raises:
        ValidationFailed: the name has not the right form.
        ConflictError: it exists with another role.
    """
    actor.require_any(SCOPES)
    require_name(name)
    role = DatasetRole(role).value
    with transaction.atomic():
        dataset, is_new = Dataset.objects.get_or_create(
            name=name, defaults={"role": role, "created_by": actor.user}
        )
        if is_new:
            record_audit(
                actor=actor, action="dataset.create", target=dataset, after={"name": name, "role": role}
            )
    if dataset.role != role:
        raise ConflictError("dataset-role-differs", name=name, role=dataset.role)
    return dataset, is_new


def register_dataset_version(
    *, name: str, role: str, artifact_digest: str, actor: Actor, card: Mapping[str, Any] | None = None
) -> tuple[DatasetVersion, bool]:
    """Checks a stored `data.jsonl` and makes it the next version of a dataset (made when it is new).

    Args:
        name: The dataset.
        role: Its role.
        artifact_digest: An artifact with `data.jsonl` alone.
        actor: Who asks.
        card: What is known of where the bytes come from; what the registry counts itself has precedence.

    Returns:
        The version, and whether it is new: the same bytes again are the version that is there.

    Raises:
        NotFoundError: there is no such artifact.
        ValidationFailed: the artifact is not one `data.jsonl`, or lines are at fault (`dataset-invalid`; the
            first faults with their lines, `num_faults` in all).
        ConflictError: the dataset has another role.
    """
    actor.require_any(SCOPES)
    checked = check_dataset_version(name=name, role=role, artifact_digest=artifact_digest, card=card)
    return store_dataset_version(checked=checked, actor=actor)


def check_dataset_version(
    *, name: str, role: str, artifact_digest: str, card: Mapping[str, Any] | None = None
) -> CheckedVersion:
    """The first half of `register_dataset_version`: reads every line and writes nothing, so it may take long.

    Raises:
        As `register_dataset_version`.
    """
    require_name(name)
    role = DatasetRole(role).value
    artifact = get_artifact(artifact_digest)
    require_dataset_role(name=name, role=role)
    summary = _check_content(artifact, role)
    return CheckedVersion(name=name, role=role, artifact=artifact, summary=summary, card=dict(card or {}))


def store_dataset_version(*, checked: CheckedVersion, actor: Actor) -> tuple[DatasetVersion, bool]:
    """The second half of `register_dataset_version`; several may be stored in one transaction, in the order
    of their names.

    Raises:
        ConflictError: the dataset has another role.
    """
    with transaction.atomic():
        dataset, _ = ensure_dataset(name=checked.name, role=checked.role, actor=actor)
        # The row lock orders two requests: the second sees the version that the first made.
        Dataset.objects.select_for_update().get(pk=dataset.pk)
        known = DatasetVersion.objects.filter(dataset=dataset, artifact=checked.artifact).first()
        if known is not None:
            return known, False
        return _create_version(dataset, checked, actor), True


def require_dataset_role(*, name: str, role: str) -> None:
    """Lets pass when a dataset of that name could take a version of that role.

    Raises:
        ConflictError: it exists with another role.
    """
    existing = Dataset.objects.filter(name=name).first()
    if existing is not None and existing.role != role:
        raise ConflictError("dataset-role-differs", name=name, role=existing.role)


def record_review(*, version: DatasetVersion, num_reviewed: int, num_bad: int, num_to_fix: int) -> None:
    """Notes how many examples of a version people have looked at, and what they found (MISSION C3(6)).

    The counts are of distinct examples; whoever keeps the verdicts also keeps their audit rows.
    """
    DatasetVersion.objects.filter(pk=version.pk).update(
        num_reviewed=num_reviewed, num_bad=num_bad, num_to_fix=num_to_fix
    )


def _create_version(dataset: Dataset, checked: CheckedVersion, actor: Actor) -> DatasetVersion:
    Dataset.objects.filter(pk=dataset.pk).update(next_version_number=F("next_version_number") + 1)
    dataset.refresh_from_db()
    summary = checked.summary
    version = DatasetVersion.objects.create(
        dataset=dataset,
        number=dataset.next_version_number - 1,
        artifact=checked.artifact,
        num_examples=summary.num_examples,
        num_verified=summary.num_verified,
        card={**checked.card, **_card(summary)},
        created_by=actor.user,
    )
    after = {
        "version": str(version),
        "artifact": checked.artifact.digest,
        "num_examples": summary.num_examples,
    }
    record_audit(actor=actor, action="dataset_version.create", target=version, after=after)
    return version


def _card(summary: DatasetSummary) -> dict[str, Any]:
    return {"tags": {tag: dict(values) for tag, values in summary.tags.items()}}


def _check_content(artifact: Artifact, role: str) -> DatasetSummary:
    manifest = manifest_of(artifact.digest)
    entry = manifest.file(DATA_FILE)
    if entry is None or manifest.num_files != 1:
        names = shown_list(file.path for file in manifest.files)
        message = f"A dataset version is one file, {DATA_FILE}; the artifact holds {names}."
        raise ValidationFailed("dataset-invalid", faults=[Fault(code="dataset-files", message=message)])
    if entry.size_bytes > settings.MAX_DATASET_BYTES:
        message = f"{entry.size_bytes} bytes; at most {settings.MAX_DATASET_BYTES} are allowed."
        fault = Fault(code="dataset-too-large", message=message, where=DATA_FILE)
        raise ValidationFailed("dataset-invalid", faults=[fault])
    with get_store().open(entry.sha256) as file:
        summary = check_dataset_lines(file, role=role, file_name=DATA_FILE)
    if not summary.is_valid:
        raise ValidationFailed(
            "dataset-invalid",
            faults=[Fault.from_finding(finding) for finding in summary.faults],
            num_faults=summary.num_faults,
        )
    return summary
