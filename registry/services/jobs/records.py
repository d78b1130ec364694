"""Values that job services take and give, and the texts that may be stored."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from registry.errors import ConflictError

MAX_MESSAGE_CHARS = 500
"""Width of `Job.message`."""


class ClaimLost(ConflictError):
    """The job was given to another attempt, or ended, since it was claimed."""

    wordings = {
        "job-claim-lost": "Attempt {attempt} no longer owns job {job_id}; whatever it did is not taken over.",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedJob:
    """One attempt at a job.

    Attributes:
        claim: The fencing token: nothing is accepted for the job without it.
        attempt: 1 for the first.
        inputs: As in `registry.models.Job`.
        hints: Likewise.
    """

    job_id: UUID
    claim: UUID
    attempt: int
    worker: str
    kind: str
    code_version: str
    inputs: Mapping[str, Any]
    config: Mapping[str, Any]
    time_limit_seconds: int
    subject: str
    hints: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    """What a worker learns when it reports that it is alive."""

    is_owner: bool
    is_cancel_requested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEventRecord:
    """One event to be stored; the fields mean what they mean in `registry.models.JobEvent`."""

    at: datetime
    type: str
    level: str = ""
    message: str = ""
    fraction: float | None = None
    step: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


def storable_text(text: str) -> str:
    """Returns the text without what a database refuses: NUL and lone surrogates become U+FFFD."""
    return text.replace("\0", "\ufffd").encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def storable_message(text: str) -> str:
    """Returns the text fit for `Job.message`: storable, and cut to its width."""
    clean = storable_text(text)
    return clean if len(clean) <= MAX_MESSAGE_CHARS else clean[: MAX_MESSAGE_CHARS - 1] + "…"


def storable_json(value: Any) -> Any:
    """Returns a JSON value whose texts are storable and whose non-finite numbers are null (JSON has none)."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {storable_text(str(key)): storable_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value
