"""Bodies of the training app's requests and answers."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from registry.api.strict import StrictSerializer
from registry.choices import ACTIVE_JOB_STATES, JobKind, JobState
from registry.models import Job
from training.choices import ACTIVE_TRAINING_STATES, FindingSeverity, TrainingPurpose, TrainingRunState
from training.engine.remedies import Remedy
from training.models import TrainingFinding, TrainingRun
from training.selectors.comparison import ComparedRow, Comparison
from training.selectors.runs import get_verdict
from training.services.run_requests import MAX_NOTE_CHARACTERS

MAX_REFERENCE_CHARS = 128
MAX_DATASETS = 50


class TrainingJobSerializer(serializers.ModelSerializer[Job]):
    """The job that a run waits for."""

    kind = serializers.ChoiceField(choices=JobKind.choices, read_only=True)
    state = serializers.ChoiceField(choices=JobState.choices, read_only=True)

    class Meta:
        model = Job
        fields = ("id", "kind", "state", "fraction", "message")
        read_only_fields = fields


class FollowingSerializer(serializers.ModelSerializer[Any]):
    """What is shown of every row whose state follows a job."""

    is_final = serializers.SerializerMethodField()
    current_job = serializers.SerializerMethodField()

    def get_is_final(self, row: Any) -> bool:
        """Whether it has ended."""
        return row.state not in ACTIVE_TRAINING_STATES

    @extend_schema_field(TrainingJobSerializer(allow_null=True))
    def get_current_job(self, row: Any) -> Mapping[str, Any] | None:
        """The job that it waits for."""
        if row.job is None or row.job.state not in ACTIVE_JOB_STATES:
            return None
        return TrainingJobSerializer(row.job).data

    def absolute(self, path: str) -> str:
        """An address with scheme and host, when the request is known."""
        return absolute_address(path, self.context)


def absolute_address(path: str, context: Mapping[str, Any]) -> str:
    """An address with scheme and host, when the serializer's context holds the request."""
    request = context.get("request")
    return path if request is None else str(request.build_absolute_uri(path))


class TrainingRunCreateSerializer(StrictSerializer):
    """A training run that is wanted."""

    name = serializers.CharField(max_length=MAX_REFERENCE_CHARS)
    base_model = serializers.CharField(max_length=MAX_REFERENCE_CHARS)
    datasets = serializers.ListField(
        child=serializers.CharField(max_length=MAX_REFERENCE_CHARS), max_length=MAX_DATASETS
    )
    holdout = serializers.CharField(max_length=MAX_REFERENCE_CHARS, required=False, allow_null=True)
    config = serializers.DictField(required=False, help_text="Missing keys take their defaults.")
    purpose = serializers.ChoiceField(choices=TrainingPurpose.choices, required=False)
    # DRF takes declared fields off the class, so that they hide none of its own attributes.
    parent = serializers.UUIDField(  # type: ignore[assignment]
        required=False, allow_null=True, help_text="The run that this one repeats or changes."
    )
    note = serializers.CharField(max_length=MAX_NOTE_CHARACTERS, required=False, allow_blank=True)
    allow_lint_errors = serializers.BooleanField(
        required=False, help_text="Begin even when the rules find errors; this is audited."
    )


class VariationCreateSerializer(StrictSerializer):
    """A variation of a run that is wanted."""

    remedy = serializers.ChoiceField(choices=[(remedy.value, remedy.value) for remedy in Remedy])
    name = serializers.CharField(max_length=MAX_REFERENCE_CHARS, required=False, allow_null=True)
    general_dataset = serializers.CharField(
        max_length=MAX_REFERENCE_CHARS,
        required=False,
        allow_null=True,
        help_text="For more-general-data; else the smallest registered one that has enough.",
    )
    note = serializers.CharField(max_length=MAX_NOTE_CHARACTERS, required=False, allow_blank=True)
    allow_lint_errors = serializers.BooleanField(required=False)


class TrainingFindingSerializer(serializers.ModelSerializer[TrainingFinding]):
    """Something that the monitor saw in a run."""

    severity = serializers.ChoiceField(choices=FindingSeverity.choices, read_only=True)

    class Meta:
        model = TrainingFinding
        fields = (
            "code",
            "row",
            "symptom_class",
            "severity",
            "step",
            "message",
            "evidence",
            "treatment",
        )
        read_only_fields = fields


class LintFindingSerializer(serializers.Serializer[Any]):
    """What a rule found in the configuration before the run."""

    code = serializers.CharField()
    severity = serializers.ChoiceField(choices=FindingSeverity.choices)
    message = serializers.CharField()
    where = serializers.CharField()
    remedy = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]


class UncheckedRuleSerializer(serializers.Serializer[Any]):
    """A rule that was not checked, for want of facts."""

    code = serializers.CharField()
    missing = serializers.ListField(child=serializers.CharField())


class LintSerializer(serializers.Serializer[Any]):
    """What the rules said of the configuration; empty for runs that were never judged."""

    findings = LintFindingSerializer(many=True, required=False)
    unchecked = UncheckedRuleSerializer(many=True, required=False)
    is_overridden = serializers.BooleanField(required=False)


class TrainingRunSerializer(FollowingSerializer):
    """A training run."""

    state = serializers.ChoiceField(choices=TrainingRunState.choices, read_only=True)
    purpose = serializers.ChoiceField(choices=TrainingPurpose.choices, read_only=True)
    verdict = serializers.SerializerMethodField()
    parent = serializers.UUIDField(  # type: ignore[assignment]
        source="parent_id", read_only=True, allow_null=True
    )
    lint = serializers.SerializerMethodField()
    findings = TrainingFindingSerializer(many=True, read_only=True)
    base_model = serializers.CharField(read_only=True)
    datasets = serializers.SerializerMethodField()
    holdout = serializers.CharField(read_only=True, allow_null=True)
    artifact = serializers.CharField(source="artifact_id", read_only=True, allow_null=True)
    metrics_url = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    class Meta:
        model = TrainingRun
        fields = (
            "id",
            "name",
            "state",
            "is_final",
            "purpose",
            "verdict",
            "parent",
            "remedy",
            "note",
            "base_model",
            "datasets",
            "holdout",
            "config",
            "lint",
            "findings",
            "current_job",
            "artifact",
            "values",
            "failure",
            "created_at",
            "finished_at",
            "metrics_url",
            "links",
        )
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_datasets(self, run: TrainingRun) -> list[str]:
        """What it is trained on."""
        return [str(item) for item in run.datasets.all()]

    @extend_schema_field(serializers.ChoiceField(choices=["passed", "failed"], allow_null=True))
    def get_verdict(self, run: TrainingRun) -> str | None:
        """How a mini or preflight run came out; null for trainings, and before the end."""
        return get_verdict(run)

    @extend_schema_field(LintSerializer())
    def get_lint(self, run: TrainingRun) -> Mapping[str, Any]:
        """What the rules said before the run."""
        report: Mapping[str, Any] = run.lint
        return report

    @extend_schema_field(serializers.URLField())
    def get_metrics_url(self, run: TrainingRun) -> str:
        """Where the curves are."""
        return self.absolute(reverse("training-run-metrics", args=[run.pk]))

    @extend_schema_field(serializers.DictField(child=serializers.URLField()))
    def get_links(self, run: TrainingRun) -> dict[str, str]:
        """Addresses that belong to it."""
        return {
            "self": self.absolute(reverse("training-run-detail", args=[run.pk])),
            "documents": self.absolute(reverse("training-run-documents", args=[run.pk])),
            "comparison": self.absolute(reverse("training-run-comparison", args=[run.pk])),
            "report": self.absolute(reverse("admin:training_trainingrun_report", args=[run.pk])),
        }


class CurvePointSerializer(serializers.Serializer[Any]):
    """One point of a curve."""

    step = serializers.IntegerField()
    value = serializers.FloatField()


class CurvesSerializer(serializers.Serializer[Any]):
    """All curves of a run by name."""

    results = serializers.DictField(child=CurvePointSerializer(many=True))


class DocumentsSerializer(serializers.Serializer[Any]):
    """What a run reported besides its curves."""

    results = serializers.DictField(child=serializers.JSONField())


class ComparedRunSerializer(serializers.Serializer[TrainingRun]):
    """One column of a comparison."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=TrainingRunState.choices)
    parent = serializers.UUIDField(source="parent_id", allow_null=True)  # type: ignore[assignment]
    remedy = serializers.CharField()
    artifact = serializers.CharField(source="artifact_id", allow_null=True)


class ComparedRowSerializer(serializers.Serializer[ComparedRow]):
    """One line of a comparison: a value for each run, null where it has none."""

    name = serializers.CharField()
    values = serializers.ListField(child=serializers.JSONField(allow_null=True))


class ComparisonSerializer(serializers.Serializer[Comparison]):
    """A run and its relatives side by side, the eldest first."""

    runs = ComparedRunSerializer(many=True)
    differences = ComparedRowSerializer(many=True)
    measures = ComparedRowSerializer(many=True)
    verdicts = ComparedRowSerializer(many=True)
    findings = serializers.ListField(child=serializers.ListField(child=serializers.CharField()))
