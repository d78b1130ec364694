"""Reads the report folder of an evaluate job and stores it as rows, so that it can be filtered and judged.

A report comes from our own job process, but the texts in it come from a model: they are cleaned of what a
database cannot hold, and everything else about the form of the report is checked before a row is written.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from evaluation.choices import RunState, RunSubject
from evaluation.engine.json_text import JsonTextError, parse_json
from evaluation.errors import ReportError
from evaluation.models import EvaluationRun, ExampleResult
from evaluation.models.runs import MAX_TAG_CHARACTERS
from evaluation.services.run_states import follow_run, lock_run, move_run
from registry.choices import EVALUATION_ROLES, VersionState
from registry.models import Job
from registry.services.actors import Actor
from registry.services.artifacts import read_file_bytes
from registry.services.jobs.records import storable_json

METRICS_FILE: Final = "metrics.json"
EXAMPLES_FILE: Final = "examples.jsonl"
MAX_METRICS_BYTES: Final = 32 * 2**20
MAX_EXAMPLES_BYTES: Final = 512 * 2**20
SCHEMA_VERSION: Final = 1
_FORMS: Final = ("base", "adapter", "merged")
_BATCH_ROWS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a report folder holds.

    Attributes:
        digest: Digest of the report artifact.
        metrics: Content of metrics.json.
        rows: Content of examples.jsonl, in its order; each (role, form, example id) once.
    """

    digest: str
    metrics: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]


def load_report(*, job: Job, run: EvaluationRun) -> Report:
    """Reads and checks the report that a succeeded evaluate job left.

    Raises:
        ReportError: there is none, or it has not the agreed form.
        AssayError: its files cannot be read from the store.
    """
    digest = job.output_artifact_id
    if digest is None:
        raise ReportError("the job succeeded without a report")
    metrics = _read_metrics(read_file_bytes(digest=digest, path=METRICS_FILE, max_bytes=MAX_METRICS_BYTES))
    if metrics.get("subject") != run.subject:
        raise ReportError(
            f"{METRICS_FILE} is about a {metrics.get('subject')!r}; the run is a {run.subject!r}"
        )
    content = read_file_bytes(digest=digest, path=EXAMPLES_FILE, max_bytes=MAX_EXAMPLES_BYTES)
    return Report(digest=digest, metrics=metrics, rows=tuple(_read_rows(content.split(b"\n"))))


def store_report(*, run: EvaluationRun, report: Report, actor: Actor) -> None:
    """Stores rows and metrics; the run becomes `scored`, its version `evaluated`.

    Raises:
        IllegalTransition: the run came to its end meanwhile, or another process stored the report first.
    """
    with transaction.atomic():
        locked = lock_run(run)
        move_run(
            run=locked,
            to_state=RunState.SCORED,
            actor=actor,
            report_artifact_id=report.digest,
            metrics=dict(report.metrics),
        )
        # A run that failed after it was scored, and is tried again, has rows already.
        ExampleResult.objects.filter(run=locked).delete()
        ExampleResult.objects.bulk_create(
            (_result_row(locked, position, row) for position, row in enumerate(report.rows)),
            batch_size=_BATCH_ROWS,
        )
        if locked.subject == RunSubject.CANDIDATE:
            follow_run(run=locked, to_state=VersionState.EVALUATED, actor=actor)


def _read_metrics(content: bytes) -> dict[str, Any]:
    document = _parse(content, METRICS_FILE)
    if document.get("schema_version") != SCHEMA_VERSION:
        raise ReportError(
            f"{METRICS_FILE} has schema_version {document.get('schema_version')!r}, not {SCHEMA_VERSION}"
        )
    if not isinstance(document.get("sets"), dict):
        raise ReportError(f"{METRICS_FILE} has no sets")
    return document


def _read_rows(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    seen: set[tuple[str, str, str]] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{EXAMPLES_FILE} line {number}"
        row = _parse(line, where)
        role, form, example_id = row.get("role"), row.get("form"), row.get("example_id")
        if role not in EVALUATION_ROLES or form not in _FORMS or not isinstance(example_id, str):
            raise ReportError(f"{where} has no known role, form and example_id")
        if not isinstance(row.get("output"), str):
            raise ReportError(f"{where} has no output")
        key = (str(role), str(form), example_id)
        if key in seen:
            raise ReportError(f"{where} repeats {'/'.join(key)}")
        seen.add(key)
        yield row


def _parse(content: bytes, where: str) -> dict[str, Any]:
    try:
        document = parse_json(content.decode("utf-8"))
    except (UnicodeDecodeError, JsonTextError) as error:
        raise ReportError(f"{where} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ReportError(f"{where} is no JSON object")
    cleaned: dict[str, Any] = storable_json(document)
    return cleaned


def _result_row(run: EvaluationRun, position: int, row: Mapping[str, Any]) -> ExampleResult:
    return ExampleResult(
        run=run,
        position=position,
        role=row["role"],
        form=row["form"],
        example_id=row["example_id"],
        dimension=(row.get("dimension") or "")[:MAX_TAG_CHARACTERS],
        category=(row.get("category") or "")[:MAX_TAG_CHARACTERS],
        prompt=_last_message(row.get("messages")),
        output=row["output"],
        reference=row.get("reference"),
        score=row.get("score"),
        is_passed=row.get("passed"),
        parse=row.get("parse") or "",
        finish_reason=row.get("finish_reason") or "",
        details=dict(row),
    )


def _last_message(messages: Any) -> str:
    if not isinstance(messages, list) or not messages or not isinstance(messages[-1], dict):
        return ""
    return str(messages[-1].get("content", ""))
