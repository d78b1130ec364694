"""Bodies of the requests and answers about triages."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from evaluation.api.serializers import CurrentJobSerializer
from evaluation.choices import ACTIVE_TRIAGE_STATES, TriageState
from evaluation.engine.triage.kinds import CONFIRMABLE, Outcome
from evaluation.engine.triage.samples import MAX_SAMPLES
from evaluation.engine.triage.settings import DEFAULT_MAX_TOKENS, MAX_PROMPTS, MAX_TOKENS
from evaluation.models import Triage, TriageItem
from evaluation.selectors.triages import current_verdict, item_etag
from evaluation.services.triage_words import MAX_NOTE_CHARACTERS
from registry.api.strict import NameField, StrictSerializer
from registry.choices import ACTIVE_JOB_STATES

MAX_LISTED_SAMPLES = 2 * MAX_SAMPLES
"""Longer lists are not even read; the samples are counted where their faults are."""


class TriageCreateSerializer(StrictSerializer):
    """A triage that is wanted."""

    name = serializers.CharField(max_length=128)
    base_model = NameField()
    samples = serializers.ListField(
        child=serializers.JSONField(),
        max_length=MAX_LISTED_SAMPLES,
        help_text="Examples as lines of a holdout set, with `scoring` or `checks` where an answer is open.",
    )
    prompts = serializers.ListField(
        child=serializers.JSONField(),
        max_length=2 * MAX_PROMPTS,
        help_text="Objects with name, system_prompt and few_shot; the best by score is taken.",
    )
    output_schema = serializers.JSONField(required=False, allow_null=True, default=None)
    max_tokens = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_TOKENS, default=DEFAULT_MAX_TOKENS
    )


class TriageSerializer(serializers.ModelSerializer[Triage]):
    """A triage; `verdict` is the stored one of a closed triage, else as it stands now."""

    state = serializers.ChoiceField(choices=TriageState.choices, read_only=True)
    is_final = serializers.SerializerMethodField()
    base_model = serializers.CharField(read_only=True)
    current_job = serializers.SerializerMethodField()
    artifact = serializers.CharField(source="report_id", read_only=True, allow_null=True)
    num_open = serializers.IntegerField(read_only=True)
    verdict = serializers.SerializerMethodField()
    closed_by = serializers.CharField(read_only=True, allow_null=True)
    links = serializers.SerializerMethodField()

    class Meta:
        model = Triage
        fields = (
            "id",
            "name",
            "state",
            "is_final",
            "base_model",
            "num_samples",
            "num_open",
            "config",
            "summary",
            "verdict",
            "current_job",
            "artifact",
            "failure",
            "created_at",
            "finished_at",
            "closed_by",
            "closed_at",
            "links",
        )
        read_only_fields = fields

    def get_is_final(self, row: Triage) -> bool:
        """Whether its job has ended; people may still confirm samples."""
        return row.state not in ACTIVE_TRIAGE_STATES

    @extend_schema_field(CurrentJobSerializer(allow_null=True))
    def get_current_job(self, row: Triage) -> Mapping[str, Any] | None:
        """The job that it waits for."""
        if row.job is None or row.job.state not in ACTIVE_JOB_STATES:
            return None
        return CurrentJobSerializer(row.job).data

    @extend_schema_field(serializers.JSONField(allow_null=True))
    def get_verdict(self, row: Triage) -> Any:
        """What helps, with shares and reasons; null before the samples are sorted."""
        if row.verdict is not None:
            return row.verdict
        verdict = current_verdict(row)
        return None if verdict is None else verdict.to_json()

    @extend_schema_field(serializers.DictField(child=serializers.URLField()))
    def get_links(self, row: Triage) -> dict[str, str]:
        """Addresses that belong to it."""
        paths = {
            "self": reverse("triage-detail", args=[row.pk]),
            "items": reverse("triage-items", args=[row.pk]),
            "page": reverse("admin:evaluation_triage_report", args=[row.pk]),
        }
        request = self.context.get("request")
        if request is None:
            return paths
        return {name: str(request.build_absolute_uri(path)) for name, path in paths.items()}


class TriageListSerializer(TriageSerializer):
    """A triage in a list: without prompts, summary and verdict."""

    class Meta(TriageSerializer.Meta):
        fields = tuple(  # type: ignore[assignment]  # a shorter tuple than the parent's
            name for name in TriageSerializer.Meta.fields if name not in ("config", "summary", "verdict")
        )
        read_only_fields = fields  # type: ignore[assignment]


class TriageItemSerializer(serializers.ModelSerializer[TriageItem]):
    """One sample: what the rules say with their evidence (`details`), and what a person says."""

    outcome = serializers.ChoiceField(choices=[item.value for item in Outcome], read_only=True)
    confirmed_by = serializers.CharField(read_only=True, allow_null=True)
    etag = serializers.SerializerMethodField()

    class Meta:
        model = TriageItem
        fields = (
            "position",
            "sample_id",
            "outcome",
            "rule_kind",
            "confidence",
            "confirmed_kind",
            "confirmed_by",
            "confirmed_at",
            "note",
            "revision",
            "etag",
            "details",
        )
        read_only_fields = fields

    def get_etag(self, item: TriageItem) -> str:
        """For `If-Match`."""
        return item_etag(item)


class TriageWordSerializer(StrictSerializer):
    """What a person says of a sample."""

    kind = serializers.CharField(
        max_length=64, allow_blank=True, help_text=f"{', '.join(CONFIRMABLE)}; empty takes it back."
    )
    note = serializers.CharField(max_length=MAX_NOTE_CHARACTERS, required=False, allow_blank=True, default="")
    revision = serializers.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, help_text="Instead of If-Match."
    )


class TriageCloseSerializer(StrictSerializer):
    """How a triage is closed."""

    allow_unconfirmed = serializers.BooleanField(required=False, default=False)
