"""What the server answers, as frozen values. Times are ISO 8601 texts as sent; digests are as the server
writes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from client.errors import ErrorDetail, UnexpectedAnswerError
from client.findings import detail_of
from client.json_fields import Fields
from registry.artifacts.errors import ManifestError
from registry.artifacts.manifest import ArtifactFile, ArtifactManifest


def read_error_details(items: tuple[Fields, ...]) -> tuple[ErrorDetail, ...]:
    """Read ``errors``, ``findings`` or ``details`` members; what lacks a code or message gets a stand-in."""
    return tuple(
        ErrorDetail(
            code=item.optional_text("code") or "unnamed",
            message=item.optional_text("message") or "(no message)",
            where=item.optional_text("where"),
            remedy=item.optional_text("remedy"),
            severity=item.optional_text("severity") or "error",
        )
        for item in items
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whom the token stands for. ``adapters``: names it is limited to, None meaning all."""

    token_name: str | None
    user: str
    scopes: tuple[str, ...]
    adapters: tuple[str, ...] | None
    expires_at: str | None

    @classmethod
    def from_json(cls, value: object) -> "Identity":
        """Read the answer of ``GET /whoami``."""
        fields = Fields.of(value, "identity")
        return cls(
            token_name=fields.optional_text("token_name"),
            user=fields.text("user"),
            scopes=fields.texts("scopes"),
            adapters=None if fields.source.get("adapters") is None else fields.texts("adapters"),
            expires_at=fields.optional_text("expires_at"),
        )


def read_manifest(fields: Fields, digest: str) -> ArtifactManifest:
    """Read a ``files`` list and check it: safe paths, sizes, hashes, and that together they have the digest.

    Raises:
        UnexpectedAnswerError: A path could leave the target folder, or the digest is another one.
    """
    try:
        manifest = ArtifactManifest.of(
            ArtifactFile(item.text("path"), item.integer("size_bytes"), item.text("sha256"))
            for item in fields.objects("files")
        )
    except ManifestError as error:
        details = tuple(map(detail_of, error.details))
        raise UnexpectedAnswerError("manifest-invalid", str(error), details=details) from error
    if manifest.digest != digest:
        raise UnexpectedAnswerError(
            "digest-mismatch", f"The listed files have the digest {manifest.digest}, not {digest} as stated."
        )
    return manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedBlob:
    """How much of one file the server has."""

    sha256: str
    received_bytes: int
    is_complete: bool

    @classmethod
    def from_fields(cls, fields: Fields) -> "UploadedBlob":
        """Read one member of an upload's ``files`` list, or the answer of a PUT."""
        return cls(
            sha256=fields.text("sha256"),
            received_bytes=fields.integer("received_bytes"),
            is_complete=fields.boolean("is_complete"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An upload in the making. ``artifact`` is the digest once it is committed, else None."""

    id: str
    state: str
    chunk_size_bytes: int
    blobs: tuple[UploadedBlob, ...]
    artifact: str | None

    @classmethod
    def from_json(cls, value: object) -> "Upload":
        """Read the answer of ``POST /uploads`` or ``GET /uploads/{id}``."""
        fields = Fields.of(value, "upload")
        return cls(
            id=fields.text("id"),
            state=fields.text("state"),
            chunk_size_bytes=fields.integer("chunk_size_bytes"),
            blobs=tuple(UploadedBlob.from_fields(item) for item in fields.objects("files")),
            artifact=fields.optional_text("artifact"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A stored set of files, named by its digest."""

    digest: str
    kind: str
    manifest: ArtifactManifest

    @classmethod
    def from_json(cls, value: object) -> "Artifact":
        """Read the answer of ``GET /artifacts/{digest}``."""
        fields = Fields.of(value, "artifact")
        digest = fields.text("digest")
        return cls(digest=digest, kind=fields.text("kind"), manifest=read_manifest(fields, digest))


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel:
    """A registered base model."""

    name: str
    artifact: str
    architecture: str | None
    num_parameters: int | None

    @classmethod
    def from_json(cls, value: object) -> "BaseModel":
        """Read one base model."""
        fields = Fields.of(value, "base model")
        return cls(
            name=fields.text("name"),
            artifact=fields.text("artifact"),
            architecture=fields.optional_text("architecture"),
            num_parameters=fields.optional_integer("num_parameters"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetVersion:
    """A registered version of a dataset; ``reference`` is "name@number"."""

    reference: str
    role: str
    num_examples: int
    is_verified: bool

    @classmethod
    def from_json(cls, value: object) -> "DatasetVersion":
        """Read one dataset version."""
        fields = Fields.of(value, "dataset version")
        return cls(
            reference=fields.text("reference"),
            role=fields.text("role"),
            num_examples=fields.integer("num_examples"),
            is_verified=fields.boolean("is_verified", default=False),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """The job that something waits for at the moment. ``fraction``: 0-1."""

    id: str
    kind: str
    state: str
    fraction: float
    message: str

    @classmethod
    def from_fields(cls, fields: Fields | None) -> "JobProgress | None":
        """Read a ``current_job`` member; None when there is none."""
        if fields is None:
            return None
        return cls(
            id=fields.text("id"),
            kind=fields.text("kind"),
            state=fields.text("state"),
            fraction=fields.optional_number("fraction") or 0.0,
            message=fields.optional_text("message") or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a job or what waited for it failed. ``failure_class``: user, infrastructure or internal."""

    failure_class: str
    code: str
    message: str
    details: tuple[ErrorDetail, ...]

    @classmethod
    def from_fields(cls, fields: Fields | None) -> "Failure | None":
        """Read a ``failure`` member; None when there is none."""
        if fields is None:
            return None
        return cls(
            failure_class=fields.optional_text("failure_class") or "internal",
            code=fields.optional_text("code") or "unnamed",
            message=fields.optional_text("message") or "(no message)",
            details=read_error_details(fields.objects("details")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What one rule of the policy found.

    Attributes:
        name: Rule, or part of a rule (a dimension, a set).
        outcome: "passed", "failed", "inconclusive" or "skipped".
        observed: Observed value, or None when it could not be computed.
        interval: 95 % interval (low, high), or None.
        interval_method: How the interval was made, or None.
        threshold: Value that decides, or None for a rule without one.
        num_examples: Examples behind the value, or None.
        explanation: Sentence for people.
        example_ids: Examples that decide it.
        parts: Sub-results.
    """

    name: str
    outcome: str
    observed: float | None
    interval: tuple[float, float] | None
    interval_method: str | None
    threshold: float | None
    num_examples: int | None
    explanation: str
    example_ids: tuple[str, ...]
    parts: tuple["RuleResult", ...]

    @classmethod
    def from_fields(cls, fields: Fields) -> "RuleResult":
        """Read a member of ``decision.rules`` or of a rule's ``parts``."""
        return cls(
            name=fields.optional_text("rule") or fields.text("name"),
            outcome=fields.text("outcome"),
            observed=fields.optional_number("observed"),
            interval=_read_interval(fields.source.get("interval")),
            interval_method=fields.optional_text("interval_method"),
            threshold=fields.optional_number("threshold"),
            num_examples=fields.optional_integer("num_examples"),
            explanation=fields.optional_text("explanation") or "",
            example_ids=fields.texts("example_ids"),
            parts=tuple(cls.from_fields(part) for part in fields.objects("parts")),
        )


def _read_interval(value: object) -> tuple[float, float] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    low, high = value
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The verdict with the rules behind it."""

    verdict: str
    summary: str
    rules: tuple[RuleResult, ...]

    @classmethod
    def from_fields(cls, fields: Fields | None) -> "Decision | None":
        """Read a ``decision`` member; None when there is none yet."""
        if fields is None:
            return None
        return cls(
            verdict=fields.text("verdict"),
            summary=fields.optional_text("summary") or "",
            rules=tuple(RuleResult.from_fields(rule) for rule in fields.objects("rules")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """An adapter version on its way to a verdict.

    Attributes:
        state: submitted, checked, merged, evaluated, passed, rejected, inconclusive, invalid, failed or
            cancelled.
        findings: What intake found, errors and warnings.
        metrics: The candidate's figures per set, or None before the evaluation.
        baseline_metrics: The same for the base model with the prompt-only solution.
        report_url: Address of the report page, or None.
        document: The server's whole answer.
    """

    id: str
    adapter: str
    version: int
    state: str
    is_final: bool
    suite: str
    policy: str | None
    base_model: str
    artifact: str | None
    current_job: JobProgress | None
    findings: tuple[ErrorDetail, ...]
    failure: Failure | None
    decision: Decision | None
    metrics: Mapping[str, object] | None
    baseline_metrics: Mapping[str, object] | None
    created_at: str | None
    finished_at: str | None
    report_url: str | None
    document: Mapping[str, object] = field(repr=False)

    @property
    def reference(self) -> str:
        """The adapter version as "name@number"."""
        return f"{self.adapter}@{self.version}"

    @classmethod
    def from_json(cls, value: object) -> "Submission":
        """Read one submission."""
        fields = Fields.of(value, "submission")
        metrics = fields.optional_nested("metrics")
        baseline_metrics = fields.optional_nested("baseline_metrics")
        links = fields.optional_nested("links")
        return cls(
            id=fields.text("id"),
            adapter=fields.text("adapter"),
            version=fields.integer("version"),
            state=fields.text("state"),
            is_final=fields.boolean("is_final"),
            suite=fields.text("suite"),
            policy=fields.optional_text("policy"),
            base_model=fields.text("base_model"),
            artifact=fields.optional_text("artifact"),
            current_job=JobProgress.from_fields(fields.optional_nested("current_job")),
            findings=read_error_details(fields.objects("findings")),
            failure=Failure.from_fields(fields.optional_nested("failure")),
            decision=Decision.from_fields(fields.optional_nested("decision")),
            metrics=metrics.source if metrics else None,
            baseline_metrics=baseline_metrics.source if baseline_metrics else None,
            created_at=fields.optional_text("created_at"),
            finished_at=fields.optional_text("finished_at"),
            report_url=links.optional_text("report") if links else None,
            document=fields.source,
        )
