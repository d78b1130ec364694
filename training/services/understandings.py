"""How raw files would be read, found out while a person waits; nothing is stored."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from registry.services.artifacts import materialise_artifact
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.understanding import understand
from training.engine.errors import ConfigInvalid, DataInvalid, Fault
from training.models import RawData

MAX_UNDERSTOOD_BYTES: Final = 32 * 1024**2
"""Larger files are left to the job, whose report says the same: a request must not take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawUnderstanding:
    """What raw files are taken for.

    Attributes:
        document: As in `training.engine.data.intake.understanding.Understanding.to_json`; None when there is
            none.
        is_too_large: Whether that is because of their size.
        faults: Why the files are refused as they are.
    """

    document: Mapping[str, Any] | None = None
    is_too_large: bool = False
    faults: tuple[Fault, ...] = ()


def understand_raw_data(raw: RawData, intake: Mapping[str, Any]) -> RawUnderstanding:
    """Looks at the first rows of raw files of at most 32 MiB together.

    Args:
        raw: The files.
        intake: What is stated of them, as in a recipe.

    Raises:
        AssayError: bytes are missing from the store, or it is full.
    """
    if raw.artifact.size_bytes > MAX_UNDERSTOOD_BYTES:
        return RawUnderstanding(is_too_large=True)
    root = Path(settings.WORK_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    try:
        stated = IntakeSettings.from_json(intake)
        with tempfile.TemporaryDirectory(prefix="understanding-", dir=root) as parent:
            folder = Path(parent) / "sources"
            materialise_artifact(digest=raw.artifact_id, folder=folder)
            return RawUnderstanding(document=understand(folder, stated).to_json())
    except (ConfigInvalid, DataInvalid) as error:
        faults = error.faults or (Fault(code=error.code, message=error.message),)
        return RawUnderstanding(faults=tuple(faults))
