"""Frozen values for runs, jobs and channels; the rest of the server's answers is in ``client.models``."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from client.json_fields import Fields
from client.models import Failure, JobProgress, read_manifest
from registry.artifacts.manifest import ArtifactManifest

RUN_END_STATES = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A baseline or training run. ``artifact``: digest of what it made, or None."""

    id: str
    state: str
    current_job: JobProgress | None
    failure: Failure | None
    artifact: str | None
    document: Mapping[str, object] = field(repr=False)

    @property
    def is_final(self) -> bool:
        """Whether the run has ended, in whatever way."""
        return self.state in RUN_END_STATES

    @classmethod
    def from_json(cls, value: object) -> "Run":
        """Read a baseline run or a training run."""
        fields = Fields.of(value, "run")
        return cls(
            id=fields.text("id"),
            state=fields.text("state"),
            current_job=JobProgress.from_fields(fields.optional_nested("current_job")),
            failure=Failure.from_fields(fields.optional_nested("failure")),
            artifact=fields.optional_text("artifact"),
            document=fields.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job. ``fraction``: 0-1; times are ISO 8601 texts, None while they have not come."""

    id: str
    kind: str
    state: str
    queue: str | None
    attempt: int | None
    fraction: float
    message: str
    failure: Failure | None
    created_at: str | None
    started_at: str | None
    finished_at: str | None
    duration_seconds: float | None
    document: Mapping[str, object] = field(repr=False)

    @property
    def is_final(self) -> bool:
        """Whether the job has ended, in whatever way."""
        return self.state in RUN_END_STATES

    @classmethod
    def from_json(cls, value: object) -> "Job":
        """Read one job."""
        fields = Fields.of(value, "job")
        return cls(
            id=fields.text("id"),
            kind=fields.text("kind"),
            state=fields.text("state"),
            queue=fields.optional_text("queue"),
            attempt=fields.optional_integer("attempt"),
            fraction=fields.optional_number("fraction") or 0.0,
            message=fields.optional_text("message") or "",
            failure=Failure.from_fields(fields.optional_nested("failure")),
            created_at=fields.optional_text("created_at"),
            started_at=fields.optional_text("started_at"),
            finished_at=fields.optional_text("finished_at"),
            duration_seconds=fields.optional_number("duration_seconds"),
            document=fields.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One line of a job's event stream; ``sequence`` grows within the job."""

    sequence: int
    at: str
    type: str
    level: str | None
    message: str
    fraction: float | None

    @classmethod
    def from_fields(cls, fields: Fields) -> "JobEvent":
        """Read one member of ``GET /jobs/{id}/events``."""
        return cls(
            sequence=fields.integer("sequence"),
            at=fields.text("at"),
            type=fields.text("type"),
            level=fields.optional_text("level"),
            message=fields.optional_text("message") or "",
            fraction=fields.optional_number("fraction"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedVersion:
    """The adapter version that a channel serves."""

    adapter: str
    version: int
    promotion_id: str | None
    promoted_at: str | None
    promoted_by: str | None

    @property
    def reference(self) -> str:
        """The adapter version as "name@number"."""
        return f"{self.adapter}@{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel. ``etag`` names its present state for If-Match; ``current`` is None while nothing is
    promoted.
    """

    name: str
    form: str
    etag: str
    current: ServedVersion | None
    document: Mapping[str, object] = field(repr=False)

    @classmethod
    def from_json(cls, value: object) -> "Channel":
        """Read one channel."""
        fields = Fields.of(value, "channel")
        current = fields.optional_nested("current")
        return cls(
            name=fields.text("name"),
            form=fields.text("form"),
            etag=fields.text("etag"),
            current=None if current is None else _read_served_version(current),
            document=fields.source,
        )


def _read_served_version(fields: Fields) -> ServedVersion:
    promotion_id = fields.source.get("promotion_id")
    return ServedVersion(
        adapter=fields.text("adapter"),
        version=fields.integer("version"),
        promotion_id=None if promotion_id is None else str(promotion_id),
        promoted_at=fields.optional_text("promoted_at"),
        promoted_by=fields.optional_text("promoted_by"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a channel ships at the moment: the files to pull and where they come from.

    Attributes:
        artifact: Digest of what ships.
        form: "merged" (a whole model) or "adapter" (goes with ``base_model_artifact``).
        files: The files, their paths checked.
    """

    channel: str
    etag: str
    form: str
    base_model: str
    base_model_artifact: str
    adapter: str
    version: int
    artifact: str
    files: ArtifactManifest
    document: Mapping[str, object] = field(repr=False)

    @classmethod
    def from_json(cls, value: object) -> "Manifest":
        """Read the answer of ``GET /channels/{name}/manifest``."""
        fields = Fields.of(value, "manifest")
        base_model = fields.nested("base_model")
        artifact = fields.text("artifact")
        return cls(
            channel=fields.text("channel"),
            etag=fields.text("etag"),
            form=fields.text("form"),
            base_model=base_model.text("name"),
            base_model_artifact=base_model.text("artifact"),
            adapter=fields.text("adapter"),
            version=fields.integer("version"),
            artifact=artifact,
            files=read_manifest(fields, artifact),
            document=fields.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyCheck:
    """One part of the server's readiness."""

    name: str
    is_ok: bool
    detail: str


def read_ready_checks(value: object) -> tuple[ReadyCheck, ...]:
    """Read the answer of ``GET /health/ready``."""
    checks = Fields.of(value, "readiness").nested("checks")
    return tuple(
        ReadyCheck(
            name=name,
            is_ok=checks.nested(name).boolean("ok"),
            detail=checks.nested(name).optional_text("detail") or "",
        )
        for name in checks.source
    )
