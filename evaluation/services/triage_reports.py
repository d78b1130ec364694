"""Reads the report folder of a triage job. It comes from our own process, and the texts in it from a model:
they are cleaned of what a database cannot hold, and the form of everything else is checked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluation.engine.json_text import JsonTextError, parse_json
from evaluation.engine.triage.kinds import AMBIGUOUS, FailureKind, Outcome
from registry.errors import AssayError
from registry.models import Job
from registry.services.artifacts import read_file_bytes
from registry.services.jobs.records import storable_json

SUMMARY_FILE: Final = "triage.json"
ITEMS_FILE: Final = "items.jsonl"
SCHEMA_VERSION: Final = 1
MAX_SUMMARY_BYTES: Final = 4 * 2**20
MAX_ITEMS_BYTES: Final = 128 * 2**20
_KINDS: Final = (None, AMBIGUOUS, *(kind.value for kind in FailureKind))


class TriageReportError(Exception):
    """A report artifact cannot be read as the result of a triage job. Never the user's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageReport:
    """What a report folder holds.

    Attributes:
        digest: Digest of the report artifact.
        summary: Content of triage.json.
        items: Content of items.jsonl, one for each sample, in its order.
    """

    digest: str
    summary: Mapping[str, Any]
    items: tuple[Mapping[str, Any], ...]


def load_triage_report(job: Job, *, num_samples: int) -> TriageReport:
    """Reads and checks the report that a succeeded triage job left.

    Raises:
        TriageReportError: there is none, or it has not the agreed form.
    """
    digest = job.output_artifact_id
    if digest is None:
        raise TriageReportError("the job succeeded without a report")
    try:
        summary = _parse(
            read_file_bytes(digest=digest, path=SUMMARY_FILE, max_bytes=MAX_SUMMARY_BYTES), SUMMARY_FILE
        )
        content = read_file_bytes(digest=digest, path=ITEMS_FILE, max_bytes=MAX_ITEMS_BYTES)
    except AssayError as error:
        raise TriageReportError(str(error)) from error
    if summary.get("schema_version") != SCHEMA_VERSION or not isinstance(summary.get("prompts"), list):
        raise TriageReportError(f"{SUMMARY_FILE} has no known schema_version and prompts")
    lines = [line for line in content.split(b"\n") if line.strip()]
    items = tuple(_read_item(line, number) for number, line in enumerate(lines, start=1))
    if len(items) != num_samples:
        raise TriageReportError(f"{ITEMS_FILE} has {len(items)} samples, the triage {num_samples}")
    return TriageReport(digest=digest, summary=summary, items=items)


def _read_item(line: bytes, number: int) -> Mapping[str, Any]:
    where = f"{ITEMS_FILE} line {number}"
    item = _parse(line, where)
    sorting = item.get("sorting")
    is_sound = (
        item.get("position") == number
        and isinstance(item.get("sample_id"), str)
        and isinstance(item.get("output"), str)
        and item.get("outcome") in [outcome.value for outcome in Outcome]
        and isinstance(sorting, dict)
        and sorting.get("kind") in _KINDS
        and isinstance(sorting.get("confidence"), int | float)
    )
    if not is_sound:
        raise TriageReportError(f"{where} has not the form of a triaged sample")
    return item


def _parse(content: bytes, where: str) -> dict[str, Any]:
    try:
        document = parse_json(content.decode("utf-8"))
    except (UnicodeDecodeError, JsonTextError) as error:
        raise TriageReportError(f"{where} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise TriageReportError(f"{where} is no JSON object")
    cleaned: dict[str, Any] = storable_json(document)
    return cleaned
