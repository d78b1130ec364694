"""Base models: registered once under a name, checked from their configurations and headers only."""

import tempfile
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction

from registry.artifacts.base_model import BaseModelSummary, read_base_model
from registry.artifacts.errors import BaseModelError
from registry.choices import TokenScope
from registry.errors import ConflictError, validation_failed
from registry.models import BaseModel
from registry.services.actors import Actor
from registry.services.artifacts import get_artifact, materialise_artifact
from registry.services.audit import record_audit
from registry.services.names import require_name


def register_base_model(
    *, name: str, artifact_digest: str, source: str = "", actor: Actor
) -> tuple[BaseModel, bool]:
    """Gives a stored model a name; the same name and bytes again return the row that is there.

    Args:
        name: Unique among base models.
        artifact_digest: The model's folder: config, safetensors, tokenizer.
        source: Where it came from, for people (a hub id, an address); may be empty.
        actor: Needs the scope `admin`.

    Returns:
        The base model, and whether it is new.

    Raises:
        NotFoundError: there is no such artifact.
        ValidationFailed: the folder is no usable base model; every reason at once.
        ConflictError: the name belongs to other bytes.
    """
    actor.require(TokenScope.ADMIN)
    require_name(name)
    artifact = get_artifact(artifact_digest)
    existing = _find_existing(name, artifact_digest)
    if existing is not None:
        return existing, False
    summary = _read_summary(artifact_digest)
    try:
        with transaction.atomic():
            model = BaseModel.objects.create(
                name=name,
                artifact=artifact,
                architecture=summary.architecture,
                num_parameters=summary.num_parameters,
                dtype=summary.dtype,
                chat_template_sha256=summary.chat_template_sha256 or "",
                source=source,
                summary=summary.to_json(),
                created_by=actor.user,
            )
            record_audit(
                actor=actor,
                action="base_model.create",
                target=model,
                after={"name": name, "artifact": artifact_digest, "source": source},
            )
    except IntegrityError as error:
        existing = _find_existing(name, artifact_digest)
        if existing is None:
            raise ConflictError("name-taken", name=name) from error
        return existing, False
    return model, True


def _find_existing(name: str, artifact_digest: str) -> BaseModel | None:
    existing = BaseModel.objects.filter(name=name).first()
    if existing is not None and existing.artifact_id != artifact_digest:
        raise ConflictError("base-model-name-taken", name=name, artifact=existing.artifact_id)
    return existing


def _read_summary(artifact_digest: str) -> BaseModelSummary:
    root = Path(settings.WORK_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="base-model-", dir=root) as parent:
        folder = Path(parent) / "model"
        materialise_artifact(digest=artifact_digest, folder=folder)
        try:
            return read_base_model(folder)
        except BaseModelError as error:
            raise validation_failed(error) from error
