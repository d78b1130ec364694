"""Answers to POSTs with an `Idempotency-Key`, kept so that a repeated request gets the same answer and does
nothing.

Only successes are kept: a request that failed changed nothing, so trying it again is what its client wants. A
request whose process died leaves a row without an answer; after `TAKEOVER_AFTER` a repeat may take it over.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.errors import ConflictError, Fault, ValidationFailed
from registry.models import IdempotencyRecord

MAX_KEY_CHARS = 128
TAKEOVER_AFTER = timedelta(minutes=2)
KEPT_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """The answer that a request with this key got."""

    status: int
    data: Any
    headers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A request that is being answered; close it with `finish_request` or `abandon_request`."""

    record_id: int


def begin_request(*, owner: str, key: str, request_sha256: str) -> OpenRequest | StoredAnswer:
    """Notes that a request is being answered, or returns the answer that it got before.

    Args:
        owner: Whose key it is; keys of different owners do not meet.
        key: What the client sent as `Idempotency-Key`.
        request_sha256: Of everything that makes the request what it is.

    Raises:
        ValidationFailed: the key is empty or too long, or was used for another request
            (`idempotency-key-reused`).
        ConflictError: the same request is being answered at this moment (`request-in-flight`).
    """
    if not key.isprintable() or not 0 < len(key) <= MAX_KEY_CHARS:
        message = f"An Idempotency-Key has 1 to {MAX_KEY_CHARS} printable characters."
        fault = Fault(code="idempotency-key-invalid", message=message, where="Idempotency-Key")
        raise ValidationFailed("idempotency-key-invalid", faults=[fault])
    try:
        with transaction.atomic():
            record = IdempotencyRecord.objects.create(owner=owner, key=key, request_sha256=request_sha256)
    except IntegrityError:
        return _of_existing(owner=owner, key=key, request_sha256=request_sha256)
    return OpenRequest(record_id=record.pk)


def finish_request(*, request: OpenRequest, answer: StoredAnswer) -> None:
    """Keeps the answer for repeats."""
    IdempotencyRecord.objects.filter(pk=request.record_id).update(
        status=answer.status, body={"data": answer.data, "headers": answer.headers}
    )


def abandon_request(*, request: OpenRequest) -> None:
    """Forgets a request that failed, so that it can be tried again with the same key."""
    IdempotencyRecord.objects.filter(pk=request.record_id, status=None).delete()


def delete_old_answers(*, now: datetime) -> int:
    """Removes rows older than `KEPT_FOR`; returns how many."""
    num_deleted, _ = IdempotencyRecord.objects.filter(created_at__lt=now - KEPT_FOR).delete()
    return num_deleted


def _of_existing(*, owner: str, key: str, request_sha256: str) -> OpenRequest | StoredAnswer:
    record = IdempotencyRecord.objects.filter(owner=owner, key=key).first()
    if record is None:
        # It was abandoned between the two statements.
        raise ConflictError("request-in-flight")
    if record.request_sha256 != request_sha256:
        message = "This Idempotency-Key was used for another request; use a new key for each request."
        raise ValidationFailed("idempotency-key-reused", message)
    if record.status is not None:
        body: dict[str, Any] = record.body or {}
        return StoredAnswer(status=record.status, data=body.get("data"), headers=body.get("headers", {}))
    now = timezone.now()
    is_taken = IdempotencyRecord.objects.filter(
        pk=record.pk, status=None, created_at=record.created_at, created_at__lt=now - TAKEOVER_AFTER
    ).update(created_at=now)
    if not is_taken:
        raise ConflictError("request-in-flight")
    return OpenRequest(record_id=record.pk)
