"""Bodies of the training app's requests and answers."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from registry.api.strict import StrictSerializer
from registry.choices import ACTIVE_JOB_STATES, JobKind, JobState
from registry.models import Job
from training.choices import ACTIVE_TRAINING_STATES, TrainingRunState
from training.models import TrainingRun

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


class TrainingRunSerializer(FollowingSerializer):
    """A training run."""

    state = serializers.ChoiceField(choices=TrainingRunState.choices, read_only=True)
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
            "base_model",
            "datasets",
            "holdout",
            "config",
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

    @extend_schema_field(serializers.URLField())
    def get_metrics_url(self, run: TrainingRun) -> str:
        """Where the curves are."""
        return self.absolute(reverse("training-run-metrics", args=[run.pk]))

    @extend_schema_field(serializers.DictField(child=serializers.URLField()))
    def get_links(self, run: TrainingRun) -> dict[str, str]:
        """Addresses that belong to it."""
        return {
            "self": self.absolute(reverse("training-run-detail", args=[run.pk])),
            "report": self.absolute(reverse("admin:training_trainingrun_report", args=[run.pk])),
        }


class CurvePointSerializer(serializers.Serializer[Any]):
    """One point of a curve."""

    step = serializers.IntegerField()
    value = serializers.FloatField()


class CurvesSerializer(serializers.Serializer[Any]):
    """All curves of a run by name."""

    results = serializers.DictField(child=CurvePointSerializer(many=True))
