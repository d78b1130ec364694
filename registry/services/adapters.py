"""Adapters and their versions: numbering, and the one place where a version's state changes."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F

from registry.choices import VERSION_TRANSITIONS, TokenScope, VersionState
from registry.errors import AssayError, Fault, IllegalTransition, ValidationFailed
from registry.models import Adapter, AdapterVersion, DatasetVersion
from registry.selectors.base_models import get_base_model
from registry.selectors.datasets import get_dataset_version
from registry.services.actors import Actor
from registry.services.artifacts import get_artifact
from registry.services.audit import record_audit
from registry.services.lookups import look_up
from registry.services.names import require_name

# What may be written together with a change of state; everything else about a version is fixed at submission.
STATE_COLUMNS = frozenset({"merged_artifact", "findings", "summary", "failure"})


def submit_version(
    *,
    adapter_name: str,
    artifact_digest: str,
    base_model_name: str,
    training_datasets: Sequence[str],
    notes: str,
    actor: Actor,
) -> tuple[AdapterVersion, bool]:
    """Makes stored bytes the next version of an adapter (made when it is new).

    Args:
        adapter_name: The adapter's line of versions.
        artifact_digest: The adapter's files.
        base_model_name: The base model that the adapter is for.
        training_datasets: What it was trained on, each as `name@number`; for the leakage rule.
        notes: For people; may be empty.
        actor: Needs the scope `submit`, and the adapter within its limit.

    Returns:
        The version, and whether it is new: the same bytes on the same base again are the version that is
        there.

    Raises:
        ValidationFailed: bad name or references; every fault at once.
        NotFoundError: there is no such artifact or base model.
    """
    actor.require(TokenScope.SUBMIT, adapter_name)
    require_name(adapter_name, where="/adapter")
    artifact = get_artifact(artifact_digest)
    base_model = get_base_model(base_model_name)
    datasets = _resolve_datasets(training_datasets)
    with transaction.atomic():
        adapter = _locked_adapter(adapter_name, actor)
        existing = AdapterVersion.objects.filter(
            adapter=adapter, artifact=artifact, base_model=base_model
        ).first()
        if existing is not None:
            return existing, False
        Adapter.objects.filter(pk=adapter.pk).update(next_version_number=F("next_version_number") + 1)
        adapter.refresh_from_db()
        version = AdapterVersion.objects.create(
            adapter=adapter,
            number=adapter.next_version_number - 1,
            base_model=base_model,
            artifact=artifact,
            notes=notes,
            created_by=actor.user,
        )
        version.training_datasets.set(datasets)
        after = {
            "version": str(version),
            "artifact": artifact_digest,
            "base_model": base_model_name,
            "training_datasets": [str(dataset) for dataset in datasets],
        }
        record_audit(actor=actor, action="version.submit", target=version, after=after)
    return version, True


def set_version_state(
    *, version: AdapterVersion, to_state: str, actor: Actor, reason: str = "", **columns: Any
) -> AdapterVersion:
    """Changes a version's state by compare-and-set, with an audit row.

    Args:
        version: As the caller saw it; its `state` is what is compared.
        to_state: One of `VERSION_TRANSITIONS[version.state]`.
        actor: For the audit log.
        reason: For the audit log.
        **columns: Of `STATE_COLUMNS`, written together with the state.

    Returns:
        The version as it is now.

    Raises:
        IllegalTransition: the table does not allow it (`illegal-transition`), or another change came first
            (`state-changed`); nothing was written.
    """
    from_state, to_state = VersionState(version.state).value, VersionState(to_state).value
    if unknown := columns.keys() - STATE_COLUMNS:
        raise AssayError("column-fixed", f"{', '.join(sorted(unknown))} of a version cannot be changed.")
    facts: dict[str, Any] = {"object_name": str(version), "from_state": from_state, "to_state": to_state}
    if to_state not in VERSION_TRANSITIONS[from_state]:
        raise IllegalTransition("illegal-transition", **facts)
    with transaction.atomic():
        changed = AdapterVersion.objects.filter(pk=version.pk, state=from_state).update(
            state=to_state, **columns
        )
        if not changed:
            raise IllegalTransition("state-changed", **facts)
        record_audit(
            actor=actor,
            action="version.state",
            target=version,
            before={"state": from_state},
            after={"state": to_state},
            reason=reason,
        )
    version.refresh_from_db()
    return version


def _locked_adapter(name: str, actor: Actor) -> Adapter:
    adapter, is_new = Adapter.objects.get_or_create(name=name, defaults={"created_by": actor.user})
    if is_new:
        record_audit(actor=actor, action="adapter.create", target=adapter, after={"name": name})
    return Adapter.objects.select_for_update().get(pk=adapter.pk)


def _resolve_datasets(references: Sequence[str]) -> list[DatasetVersion]:
    faults: list[Fault] = []
    found = []
    for index, reference in enumerate(references):
        where = f"/training_dataset/{index}"
        found.append(look_up(faults, where, partial(get_dataset_version, reference, where=where)))
    if faults:
        raise ValidationFailed("training-dataset-invalid", faults=faults)
    return list(dict.fromkeys(version for version in found if version is not None))
