"""Frozen values of training runs: what the server says of one, and how it stands beside its relatives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from client.errors import ErrorDetail
from client.json_fields import Fields
from client.models import Failure, JobProgress
from client.run_models import Run

Curve = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFinding:
    """Something that the monitor saw. ``step``: where it begins; ``row``: of the handbook, "" for none."""

    code: str
    row: str
    severity: str
    step: int
    message: str
    treatment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun(Run):
    """A training run.

    Attributes:
        name: For people.
        purpose: training, mini or preflight.
        verdict: "passed" or "failed" of a mini or preflight run that has ended; None else.
        parent: Id of the run that this one varies, or None.
        lint: What the rules said of the configuration before the run.
        findings: By the step where they begin.
        rows: Rows of the handbook that a failure belongs to.
    """

    name: str = ""
    purpose: str = "training"
    verdict: str | None = None
    parent: str | None = None
    note: str = ""
    created_at: str = ""
    lint: tuple[ErrorDetail, ...] = field(default=(), repr=False)
    findings: tuple[TrainingFinding, ...] = field(default=(), repr=False)
    rows: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: object) -> "TrainingRun":
        """Read one training run; a server of an older version tells less of it."""
        fields = Fields.of(value, "training run")
        lint, failure = fields.optional_nested("lint"), fields.optional_nested("failure")
        return cls(
            id=fields.text("id"),
            state=fields.text("state"),
            current_job=JobProgress.from_fields(fields.optional_nested("current_job")),
            failure=Failure.from_fields(failure),
            artifact=fields.optional_text("artifact"),
            document=fields.source,
            name=fields.optional_text("name") or "",
            purpose=fields.optional_text("purpose") or "training",
            verdict=fields.optional_text("verdict"),
            parent=fields.optional_text("parent"),
            note=fields.optional_text("note") or "",
            created_at=fields.optional_text("created_at") or "",
            lint=() if lint is None else tuple(map(_read_lint_finding, lint.objects("findings"))),
            findings=tuple(map(_read_finding, fields.objects("findings"))),
            rows=() if failure is None else failure.texts("rows"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A run and its relatives, the eldest first.

    Attributes:
        runs: Name, state and remedy of each.
        parts: Title of a part of the table to its rows: a name and a value for each run, "-" for none.
    """

    runs: tuple[tuple[str, str, str], ...]
    parts: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]]

    @classmethod
    def from_json(cls, value: object) -> "Comparison":
        """Read the answer of ``GET /training-runs/{id}/comparison``."""
        fields = Fields.of(value, "comparison")
        runs = fields.objects("runs")
        rows = {
            name: tuple((row.text("name"), _texts(row.source.get("values"))) for row in fields.objects(name))
            for name in ("differences", "measures", "verdicts")
        }
        findings = fields.source.get("findings")
        listed = findings if isinstance(findings, list) else []
        shown = tuple(", ".join(_texts(codes)) or "none" for codes in listed)
        return cls(
            runs=tuple(
                (run.text("name"), run.text("state"), run.optional_text("remedy") or "") for run in runs
            ),
            parts=rows | {"monitor": (("findings", shown),)},
        )


def read_curves(value: object) -> dict[str, Curve]:
    """Read the answer of ``GET /training-runs/{id}/metrics``: name to (step, value) in the order of steps."""
    results = Fields.of(value, "curves").nested("results")
    curves: dict[str, Curve] = {}
    for name in results.source:
        points = [(point.integer("step"), point.optional_number("value")) for point in results.objects(name)]
        curves[name] = [(step, number) for step, number in points if number is not None]
    return curves


def _read_lint_finding(fields: Fields) -> ErrorDetail:
    return ErrorDetail(
        code=fields.text("code"),
        message=fields.text("message"),
        where=fields.optional_text("where"),
        remedy=fields.optional_text("remedy"),
        severity=fields.optional_text("severity") or "warning",
    )


def _read_finding(fields: Fields) -> TrainingFinding:
    return TrainingFinding(
        code=fields.text("code"),
        row=fields.optional_text("row") or "",
        severity=fields.optional_text("severity") or "warning",
        step=fields.integer("step"),
        message=fields.optional_text("message") or "",
        treatment=fields.optional_text("treatment") or "",
    )


def _texts(values: object) -> tuple[str, ...]:
    items = values if isinstance(values, list) else []
    return tuple(_text(item) for item in items)


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
