"""Reads data preparations and what their jobs wrote."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from registry.errors import NotFoundError
from registry.models import DatasetVersion
from registry.services.artifacts import get_file_entry, open_blob, read_file_bytes
from training.choices import ACTIVE_PREPARATION_STATES
from training.errors import TrainingNotFound
from training.models import DataPreparation

REPORT_FILE = "report.json"
CARD_FILE = "card.md"
BAD_ROWS_FILE = "bad_rows.jsonl"
DROPPED_FILE = "dropped.jsonl"
MAX_REPORT_BYTES = 32 * 1024**2
MAX_CARD_BYTES = 4 * 1024**2
MAX_ROW_BYTES = 64 * 1024


def list_preparations() -> QuerySet[DataPreparation]:
    """All data preparations, newest first."""
    rows = DataPreparation.objects.select_related(
        "raw__artifact", "general__dataset", "unchanged__dataset", "base_model", "job", "created_by"
    )
    return rows.prefetch_related("evaluation_sets__dataset", "sets__dataset_version__dataset")


def get_preparation(preparation_id: uuid.UUID) -> DataPreparation:
    """One data preparation.

    Raises:
        TrainingNotFound: there is none of this id.
    """
    row = list_preparations().filter(pk=preparation_id).first()
    if row is None:
        raise TrainingNotFound("preparation-not-found", preparation_id=str(preparation_id))
    return row


def list_active_preparation_ids() -> list[uuid.UUID]:
    """The ids of the preparations whose job has not ended, as far as was seen."""
    rows = DataPreparation.objects.filter(state__in=ACTIVE_PREPARATION_STATES).order_by("created_at")
    return list(rows.values_list("pk", flat=True))


def list_preparation_ids_of_job(job_id: uuid.UUID) -> list[uuid.UUID]:
    """The ids of the preparations that a job belongs to."""
    return list(DataPreparation.objects.filter(job_id=job_id).values_list("pk", flat=True))


def find_preparation_of(version: DatasetVersion) -> DataPreparation | None:
    """The first preparation that gave a dataset version; None when it came into the registry otherwise."""
    return list_preparations().filter(sets__dataset_version=version).order_by("created_at").first()


def read_report(preparation: DataPreparation) -> Mapping[str, Any]:
    """The content of report.json.

    Raises:
        TrainingNotFound: the preparation has not succeeded.
        PayloadTooLarge: it is larger than any report should be.
    """
    document: Mapping[str, Any] = json.loads(read_report_bytes(preparation))
    return document


def read_report_bytes(preparation: DataPreparation) -> bytes:
    """As `read_report`, not parsed."""
    return read_file_bytes(digest=_report_digest(preparation), path=REPORT_FILE, max_bytes=MAX_REPORT_BYTES)


def read_card(preparation: DataPreparation) -> str:
    """The dataset card as Markdown. It quotes what stands in the data; it is not to be shown as HTML.

    Raises:
        TrainingNotFound: the preparation has not succeeded.
    """
    content = read_file_bytes(digest=_report_digest(preparation), path=CARD_FILE, max_bytes=MAX_CARD_BYTES)
    return content.decode("utf-8", "replace")


def read_first_rows(preparation: DataPreparation, path: str, *, limit: int) -> list[Mapping[str, Any]]:
    """The first lines of a JSON Lines file that the job wrote, such as `bad_rows.jsonl`; empty when there is
    no such file. Lines longer than 64 KiB are left out.

    Raises:
        TrainingNotFound: the preparation has not succeeded.
    """
    digest = _report_digest(preparation)
    try:
        entry = get_file_entry(digest=digest, path=path)
    except NotFoundError:
        return []
    rows: list[Mapping[str, Any]] = []
    with open_blob(entry.sha256) as file:
        while len(rows) < limit and (line := file.readline(MAX_ROW_BYTES)):
            if line.endswith(b"\n"):
                rows.append(json.loads(line))
            else:
                _skip_line(file)
    return rows


def _skip_line(file: Any) -> None:
    while (rest := file.readline(MAX_ROW_BYTES)) and not rest.endswith(b"\n"):
        continue


def _report_digest(preparation: DataPreparation) -> str:
    if preparation.report_id is None:
        raise TrainingNotFound(
            "preparation-without-report", preparation_id=str(preparation.pk), state=preparation.state
        )
    return preparation.report_id
