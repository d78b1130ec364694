"""Registers suites. A suite version never changes; the same content again is the same version."""

import functools
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from evaluation.engine.canonical import canonical_digest
from evaluation.engine.errors import SuiteError
from evaluation.engine.json_text import find_unstorable_text
from evaluation.engine.suite import suite_faults
from evaluation.engine.suite_folder import load_suite_folder
from evaluation.errors import RegistrationInvalid, registry_faults
from evaluation.models import Suite, SuiteDataset, SuiteVersion
from evaluation.services.job_requests import DATA_FILE
from registry.choices import EVALUATION_ROLES, TokenScope
from registry.errors import Fault
from registry.models import DatasetVersion
from registry.selectors.datasets import get_dataset_version
from registry.services.actors import Actor
from registry.services.artifacts import materialise_file
from registry.services.audit import record_audit
from registry.services.lookups import look_up


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSuite:
    """A suite version, and whether it was made just now."""

    version: SuiteVersion
    is_new: bool


def register_suite(*, definition: Any, datasets: Mapping[str, str], actor: Actor) -> RegisteredSuite:
    """Makes a suite version out of a definition and one dataset version for each of the four roles.

    Args:
        definition: The content of suite.json; its `name` names the suite.
        datasets: Role to "name@number".
        actor: Needs the scope `evaluate`.

    Raises:
        ScopeError: the actor may not.
        RegistrationInvalid: the definition, a role or the content of a set is at fault (code
            `suite-invalid`).
    """
    actor.require(TokenScope.EVALUATE)
    faults = _definition_faults(definition)
    versions, dataset_faults = _find_datasets(datasets)
    if faults or dataset_faults:
        raise RegistrationInvalid("suite-invalid", faults=[*faults, *dataset_faults])
    digest = suite_digest(definition, versions)
    existing = SuiteVersion.objects.filter(suite__name=definition["name"], digest=digest).first()
    if existing is not None:
        return RegisteredSuite(version=existing, is_new=False)
    _require_sound_sets(definition, versions)
    return _store_suite(definition, versions, digest, actor)


def suite_digest(definition: Mapping[str, Any], versions: Mapping[str, DatasetVersion]) -> str:
    """The sha256 over the definition and the digests of the four sets."""
    sets = {role: version.artifact_id for role, version in versions.items()}
    return canonical_digest({"definition": definition, "datasets": sets})


def _definition_faults(definition: Any) -> list[Fault]:
    if (reason := find_unstorable_text(definition)) is not None:
        return [
            Fault(code="unstorable-text", message=f"A text in the definition {reason}.", where="suite.json")
        ]
    return registry_faults(suite_faults(definition))


def _find_datasets(datasets: Mapping[str, str]) -> tuple[dict[str, DatasetVersion], list[Fault]]:
    versions: dict[str, DatasetVersion] = {}
    faults: list[Fault] = []
    for role in sorted(set(datasets) - set(EVALUATION_ROLES)):
        message = f"{role!r} is no role of a suite; the roles are {', '.join(EVALUATION_ROLES)}."
        faults.append(Fault(code="role-unknown", message=message, where="/datasets"))
    for role in EVALUATION_ROLES:
        where = f"/datasets/{role}"
        if role not in datasets:
            message = f"The suite has no {role} set; name a dataset version of that role."
            faults.append(Fault(code="role-missing", message=message, where=where))
            continue
        version = look_up(faults, where, functools.partial(get_dataset_version, datasets[role], where=where))
        if version is None:
            continue
        if version.dataset.role != role:
            message = f"{version} has role {version.dataset.role!r}, not {role!r}."
            faults.append(Fault(code="dataset-role-differs", message=message, where=where))
        versions[role] = version
    return versions, faults


def _require_sound_sets(definition: Mapping[str, Any], versions: Mapping[str, DatasetVersion]) -> None:
    """Reads the sets together with the definition, as the job will, so that no job fails for the suite's
    fault.
    """
    with tempfile.TemporaryDirectory(prefix="assay-suite-") as name:
        folder = Path(name)
        (folder / "suite.json").write_text(json.dumps(definition, ensure_ascii=False), encoding="utf-8")
        for role, version in versions.items():
            materialise_file(digest=version.artifact_id, path=DATA_FILE, target=folder / f"{role}.jsonl")
        try:
            load_suite_folder(folder)
        except SuiteError as error:
            raise RegistrationInvalid("suite-invalid", faults=registry_faults(error.faults)) from error


def _store_suite(
    definition: Mapping[str, Any], versions: Mapping[str, DatasetVersion], digest: str, actor: Actor
) -> RegisteredSuite:
    with transaction.atomic():
        name = definition["name"]
        Suite.objects.get_or_create(name=name, defaults={"created_by": actor.user})
        suite = Suite.objects.select_for_update().get(name=name)
        existing = suite.versions.filter(digest=digest).first()
        if existing is not None:
            return RegisteredSuite(version=existing, is_new=False)
        version = SuiteVersion.objects.create(
            suite=suite,
            number=suite.next_version_number,
            definition=dict(definition),
            digest=digest,
            created_by=actor.user,
        )
        SuiteDataset.objects.bulk_create(
            SuiteDataset(suite_version=version, role=role, dataset_version=item)
            for role, item in versions.items()
        )
        suite.next_version_number += 1
        suite.save(update_fields=["next_version_number"])
        sets = {role: str(item) for role, item in versions.items()}
        record_audit(
            actor=actor, action="suite.register", target=version, after={"digest": digest, "datasets": sets}
        )
    return RegisteredSuite(version=version, is_new=True)
