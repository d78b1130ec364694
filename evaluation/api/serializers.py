"""Bodies of the evaluation app's requests and answers. No rules live here: services check what needs a
look-up.
"""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from evaluation.choices import FINAL_RUN_STATES, RunState, RunSubject, Verdict
from evaluation.models import Decision, EvaluationRun, ExampleResult, Override, Policy, SuiteVersion
from evaluation.selectors.runs import state_of_submission
from registry.api.strict import MAX_NOTES_CHARS, DigestField, NameField, ReasonField, StrictSerializer
from registry.choices import ACTIVE_JOB_STATES, FINAL_VERSION_STATES, JobKind, JobState, VersionState
from registry.models import Job

MAX_REFERENCE_CHARS = 128
MAX_TRAINING_DATASETS = 50

_RUN_STATES_OF_CLIENTS: Mapping[str, str] = {
    RunState.PENDING: JobState.QUEUED,
    RunState.RUNNING: JobState.RUNNING,
    RunState.SCORED: JobState.SUCCEEDED,
    RunState.DECIDED: JobState.SUCCEEDED,
    RunState.FAILED: JobState.FAILED,
    RunState.CANCELLED: JobState.CANCELLED,
}


class ReferenceField(serializers.CharField):
    """`name` or `name@number`."""

    def __init__(self, **options: Any) -> None:
        """Takes what `CharField` takes, besides the length."""
        super().__init__(max_length=MAX_REFERENCE_CHARS, **options)


class CurrentJobSerializer(serializers.ModelSerializer[Job]):
    """The job that something waits for."""

    kind = serializers.ChoiceField(choices=JobKind.choices, read_only=True)
    state = serializers.ChoiceField(choices=JobState.choices, read_only=True)

    class Meta:
        model = Job
        fields = ("id", "kind", "state", "fraction", "message")
        read_only_fields = fields


class SuiteCreateSerializer(StrictSerializer):
    """A suite to be registered."""

    definition = serializers.JSONField(help_text="The content of suite.json.")
    datasets = serializers.DictField(
        child=ReferenceField(), help_text="holdout, ood, regression and canary, each as name@number."
    )


class SuiteSerializer(serializers.ModelSerializer[SuiteVersion]):
    """A suite version."""

    name = serializers.CharField(source="suite.name", read_only=True)
    reference = serializers.CharField(source="__str__", read_only=True)
    datasets = serializers.SerializerMethodField()

    class Meta:
        model = SuiteVersion
        fields = ("name", "number", "reference", "digest", "definition", "datasets", "created_at")
        read_only_fields = fields

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_datasets(self, version: SuiteVersion) -> dict[str, str]:
        """Role to dataset version."""
        return {item.role: str(item.dataset_version) for item in version.datasets.all()}


class PolicyCreateSerializer(StrictSerializer):
    """A policy to be registered."""

    definition = serializers.JSONField(help_text="The rules; `name` in it names the policy.")


class PolicySerializer(serializers.ModelSerializer[Policy]):
    """A policy version."""

    reference = serializers.CharField(source="__str__", read_only=True)

    class Meta:
        model = Policy
        fields = ("name", "number", "reference", "digest", "definition", "created_at")
        read_only_fields = fields


class BaselineCreateSerializer(StrictSerializer):
    """A baseline run that is wanted."""

    suite = ReferenceField()
    base_model = NameField()


class RunSerializer(serializers.ModelSerializer[EvaluationRun]):
    """A baseline run."""

    subject = serializers.ChoiceField(choices=RunSubject.choices, read_only=True)
    state = serializers.SerializerMethodField()
    is_final = serializers.SerializerMethodField()
    suite = serializers.CharField(source="suite_version", read_only=True)
    base_model = serializers.CharField(read_only=True)
    current_job = serializers.SerializerMethodField()
    artifact = serializers.CharField(source="report_artifact_id", read_only=True, allow_null=True)
    metrics = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    class Meta:
        model = EvaluationRun
        fields = (
            "id",
            "subject",
            "state",
            "is_final",
            "suite",
            "base_model",
            "current_job",
            "artifact",
            "failure",
            "metrics",
            "created_at",
            "finished_at",
            "links",
        )
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(choices=JobState.choices))
    def get_state(self, run: EvaluationRun) -> str:
        """The state in the words of jobs."""
        return _RUN_STATES_OF_CLIENTS[run.state]

    def get_is_final(self, run: EvaluationRun) -> bool:
        """Whether the run has ended."""
        return run.state in FINAL_RUN_STATES or run.state == RunState.SCORED

    @extend_schema_field(CurrentJobSerializer(allow_null=True))
    def get_current_job(self, run: EvaluationRun) -> Mapping[str, Any] | None:
        """The job that it waits for."""
        return _show_job(run.job)

    @extend_schema_field(serializers.JSONField(allow_null=True))
    def get_metrics(self, run: EvaluationRun) -> Any:
        """Figures per set."""
        return _sets_of(run)

    @extend_schema_field(serializers.DictField(child=serializers.URLField()))
    def get_links(self, run: EvaluationRun) -> dict[str, str]:
        """Addresses that belong to it."""
        return {
            "self": self._absolute(reverse("baseline-detail", args=[run.pk])),
            "report": self._absolute(report_path(run)),
        }

    def _absolute(self, path: str) -> str:
        request = self.context.get("request")
        return path if request is None else str(request.build_absolute_uri(path))


class DecisionSerializer(serializers.ModelSerializer[Decision]):
    """A verdict with the rules behind it."""

    verdict = serializers.ChoiceField(choices=Verdict.choices, read_only=True)
    policy = serializers.CharField(read_only=True)
    run = serializers.UUIDField(source="run_id", read_only=True)

    class Meta:
        model = Decision
        fields = ("id", "run", "policy", "verdict", "summary", "rules", "evidence_digest", "created_at")
        read_only_fields = fields


class RecomputationSerializer(serializers.Serializer[Any]):
    """What came of deciding again from what is stored."""

    decision = serializers.UUIDField()
    is_equal = serializers.BooleanField()
    verdict = serializers.ChoiceField(choices=Verdict.choices)
    differences = serializers.ListField(child=serializers.CharField())


class OverrideCreateSerializer(StrictSerializer):
    """A request to set a decision aside."""

    decision = serializers.UUIDField()
    reason = ReasonField()


class OverrideSerializer(serializers.ModelSerializer[Override]):
    """A request to set a decision aside, and its confirmation."""

    decision = serializers.UUIDField(source="decision_id", read_only=True)
    version = serializers.CharField(source="decision.run.version", read_only=True)
    requested_by = serializers.CharField(source="created_by", read_only=True, allow_null=True)
    confirmed_by = serializers.CharField(read_only=True, allow_null=True)
    is_confirmed = serializers.SerializerMethodField()

    class Meta:
        model = Override
        fields = (
            "id",
            "decision",
            "version",
            "reason",
            "requested_by",
            "created_at",
            "is_confirmed",
            "confirmed_by",
            "confirmed_at",
        )
        read_only_fields = fields

    def get_is_confirmed(self, override: Override) -> bool:
        """Whether a second person confirmed it."""
        return override.confirmed_at is not None


class SubmissionCreateSerializer(StrictSerializer):
    """An uploaded adapter that is to be judged."""

    adapter = serializers.CharField(max_length=MAX_REFERENCE_CHARS)
    artifact = DigestField()
    base_model = serializers.CharField(max_length=MAX_REFERENCE_CHARS)
    suite = ReferenceField()
    policy = ReferenceField(required=False)
    training_dataset = serializers.ListField(
        child=ReferenceField(), required=False, max_length=MAX_TRAINING_DATASETS
    )
    notes = serializers.CharField(required=False, allow_blank=True, max_length=MAX_NOTES_CHARS)


class SubmissionSerializer(serializers.ModelSerializer[EvaluationRun]):
    """An adapter version on its way to a verdict; the run comes from `evaluation.selectors.runs`."""

    adapter = serializers.CharField(source="version.adapter.name", read_only=True)
    version = serializers.IntegerField(source="version.number", read_only=True)
    state = serializers.ChoiceField(source="submission_state", choices=VersionState.choices, read_only=True)
    is_final = serializers.SerializerMethodField()
    verdict = serializers.SerializerMethodField()
    suite = serializers.CharField(source="suite_version", read_only=True)
    policy = serializers.CharField(read_only=True)
    base_model = serializers.CharField(read_only=True)
    artifact = serializers.CharField(source="version.artifact_id", read_only=True)
    merged_artifact = serializers.CharField(
        source="version.merged_artifact_id", read_only=True, allow_null=True
    )
    current_job = serializers.SerializerMethodField()
    findings = serializers.JSONField(source="version.findings", read_only=True)
    decision = serializers.SerializerMethodField()
    metrics = serializers.SerializerMethodField()
    baseline_metrics = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    class Meta:
        model = EvaluationRun
        fields = (
            "id",
            "adapter",
            "version",
            "state",
            "is_final",
            "verdict",
            "suite",
            "policy",
            "base_model",
            "form",
            "artifact",
            "merged_artifact",
            "current_job",
            "findings",
            "failure",
            "decision",
            "metrics",
            "baseline_metrics",
            "notes",
            "created_at",
            "finished_at",
            "links",
        )
        read_only_fields = fields

    def get_is_final(self, run: EvaluationRun) -> bool:
        """Whether nothing more will happen by itself."""
        return state_of_submission(run) in FINAL_VERSION_STATES

    @extend_schema_field(serializers.ChoiceField(choices=Verdict.choices, allow_null=True))
    def get_verdict(self, run: EvaluationRun) -> str | None:
        """What the rules say; null before."""
        decision = _decision_of(run)
        return None if decision is None else decision.verdict

    @extend_schema_field(CurrentJobSerializer(allow_null=True))
    def get_current_job(self, run: EvaluationRun) -> Mapping[str, Any] | None:
        """The job that it waits for, be it the baseline's."""
        if run.state not in (RunState.PENDING, RunState.RUNNING):
            return None
        return _show_job(run.job) or _show_job(run.baseline.job if run.baseline else None)

    @extend_schema_field(DecisionSerializer(allow_null=True))
    def get_decision(self, run: EvaluationRun) -> Mapping[str, Any] | None:
        """The verdict with the rules behind it; null before."""
        decision = _decision_of(run)
        return None if decision is None else DecisionSerializer(decision).data

    @extend_schema_field(serializers.JSONField(allow_null=True))
    def get_metrics(self, run: EvaluationRun) -> Any:
        """Figures per set of the candidate."""
        return _sets_of(run)

    @extend_schema_field(serializers.JSONField(allow_null=True))
    def get_baseline_metrics(self, run: EvaluationRun) -> Any:
        """Figures per set of the base model with its best prompt."""
        return None if run.baseline is None else _sets_of(run.baseline)

    @extend_schema_field(serializers.DictField(child=serializers.URLField()))
    def get_links(self, run: EvaluationRun) -> dict[str, str]:
        """Addresses that belong to it."""
        paths = {
            "self": reverse("submission-detail", args=[run.pk]),
            "report": report_path(run),
            "examples": reverse("submission-examples", args=[run.pk]),
        }
        request = self.context.get("request")
        if request is None:
            return paths
        return {name: str(request.build_absolute_uri(path)) for name, path in paths.items()}


class ExampleSerializer(serializers.BaseSerializer[ExampleResult]):
    """A row of the report, as the evaluate job wrote it."""

    def to_representation(self, instance: ExampleResult) -> dict[str, Any]:
        """The row as it is stored."""
        row: dict[str, Any] = instance.details
        return row


class PromoteSerializer(StrictSerializer):
    """What a channel is to serve."""

    adapter = NameField()
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    reason = ReasonField()
    override = serializers.BooleanField(required=False, default=False)


def report_path(run: EvaluationRun) -> str:
    """The address of a run's report page."""
    return reverse("admin:evaluation_evaluationrun_report", args=[run.pk])


def _show_job(job: Job | None) -> Mapping[str, Any] | None:
    if job is None or job.state not in ACTIVE_JOB_STATES:
        return None
    return CurrentJobSerializer(job).data


def _sets_of(run: EvaluationRun) -> Any:
    return None if run.metrics is None else run.metrics.get("sets")


def _decision_of(run: EvaluationRun) -> Decision | None:
    # A reverse one-to-one relation that is not there raises instead of being None.
    return run.decision if hasattr(run, "decision") else None
