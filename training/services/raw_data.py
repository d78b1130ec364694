"""Raw data: stored files get a name, so that preparations and people can refer to them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from registry.artifacts.digests import Readable
from registry.artifacts.errors import StoreFullError
from registry.artifacts.manifest import ArtifactFile, ArtifactManifest
from registry.artifacts.paths import check_paths
from registry.choices import ArtifactKind
from registry.errors import Fault, StoreFull
from registry.models import Artifact
from registry.services.actors import Actor
from registry.services.artifacts import get_artifact, get_store, record_artifact
from registry.services.audit import record_audit
from registry.services.datasets import SCOPES
from registry.services.lookups import look_up
from registry.services.names import find_name_fault
from training.errors import TrainingInvalid
from training.models import RawData


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFile:
    """One file that a person sends: its name, and its bytes from the beginning on."""

    path: str
    stream: Readable


def create_raw_data(*, name: str, artifact_digest: str, actor: Actor) -> tuple[RawData, bool]:
    """Gives stored raw files a name.

    Args:
        name: For people and for recipes; several rows may have it, the newest is then meant by it.
        artifact_digest: The files, whatever they hold: only a preparation says whether it can be read.
        actor: Needs the scope `submit` or `evaluate`.

    Returns:
        The row, and whether it is new: the same name and bytes again are the row that is there.

    Raises:
        ScopeError: the actor may not.
        TrainingInvalid: the name, or the artifact, is at fault (code `raw-data-invalid`).
    """
    actor.require_any(SCOPES)
    faults: list[Fault] = []
    if (fault := find_name_fault(name, where="/name")) is not None:
        faults.append(fault)
    artifact = look_up(faults, "/artifact", lambda: get_artifact(artifact_digest))
    if faults or artifact is None:
        raise TrainingInvalid("raw-data-invalid", faults=faults)
    return _store(name, artifact, actor)


def store_raw_files(*, name: str, files: Sequence[RawFile], actor: Actor) -> tuple[RawData, bool]:
    """Takes files into the store, stream by stream, and gives them a name.

    Args:
        name: As in `create_raw_data`.
        files: At least one.
        actor: Needs the scope `submit` or `evaluate`.

    Returns:
        As `create_raw_data`.

    Raises:
        ScopeError: the actor may not.
        TrainingInvalid: the name, or names of files, are at fault (code `raw-data-invalid`).
        StoreFull: no room.
    """
    actor.require_any(SCOPES)
    faults = [Fault.from_finding(finding) for finding in check_paths(file.path for file in files)]
    if (fault := find_name_fault(name, where="/name")) is not None:
        faults.append(fault)
    if not 1 <= len(files) <= settings.MAX_UPLOAD_FILES:
        message = f"{len(files)} files; 1 to {settings.MAX_UPLOAD_FILES} are taken."
        faults.append(Fault(code="files-missing", message=message, where="/files"))
    if faults:
        raise TrainingInvalid("raw-data-invalid", faults=faults)
    try:
        stored = [(file.path, get_store().put_stream(file.stream)) for file in files]
    except StoreFullError as error:
        raise StoreFull("store-full") from error
    manifest = ArtifactManifest.of(ArtifactFile(path, blob.size_bytes, blob.sha256) for path, blob in stored)
    artifact = record_artifact(manifest=manifest, kind=ArtifactKind.RAW_DATA, actor=actor)
    return _store(name, artifact, actor)


def _store(name: str, artifact: Artifact, actor: Actor) -> tuple[RawData, bool]:
    with transaction.atomic():
        row, is_new = RawData.objects.get_or_create(
            name=name, artifact=artifact, defaults={"created_by": actor.user}
        )
        if is_new:
            after = {"name": name, "artifact": artifact.digest}
            record_audit(actor=actor, action="raw_data.create", target=row, after=after)
    return row, is_new
