"""Reads raw data."""

import uuid

from django.db.models import QuerySet

from registry.artifacts.findings import shown
from registry.selectors.near import MAX_COMPARED_NAMES
from registry.services.names import find_name_fault, near_misses
from training.errors import TrainingNotFound
from training.models import RawData


def list_raw_data() -> QuerySet[RawData]:
    """All raw data, newest first."""
    return RawData.objects.select_related("artifact", "created_by")


def get_raw_data(reference: str | uuid.UUID) -> RawData:
    """The raw data of an id, or the newest of a name.

    Raises:
        TrainingNotFound: there is none.
    """
    rows, text = list_raw_data(), str(reference)
    row = None
    if (raw_id := _read_id(text)) is not None:
        row = rows.filter(pk=raw_id).first()
    elif find_name_fault(text, where="raw_data") is None:
        row = rows.filter(name=text).order_by("-created_at").first()
    if row is None:
        known = RawData.objects.order_by("name").values_list("name", flat=True).distinct()
        near = near_misses(text[:MAX_COMPARED_NAMES], known[:MAX_COMPARED_NAMES])
        raise TrainingNotFound("raw-data-not-found", reference=shown(text), near=near)
    return row


def _read_id(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
