"""Bodies of requests and answers about raw data, preparations and reviews."""

import json
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from registry.api.strict import DigestField, NameField, StrictSerializer
from registry.choices import DatasetRole
from training.api.serializers import (
    MAX_DATASETS,
    MAX_REFERENCE_CHARS,
    FollowingSerializer,
    absolute_address,
)
from training.choices import PreparationState, ReviewState, ReviewVerdict
from training.models import DataPreparation, RawData, ReviewItem, ReviewTask
from training.services.reviews import DEFAULT_NUM_EXAMPLES, MAX_ANSWER_CHARACTERS, MAX_NOTE_CHARACTERS

MAX_SEED = 2**53 - 1
"""The largest whole number that every JSON reader keeps."""


class RawDataCreateSerializer(StrictSerializer):
    """Stored files that are to get a name."""

    name = NameField()
    artifact = DigestField()


class RawDataSerializer(serializers.Serializer[RawData]):
    """Raw files under a name."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    artifact = serializers.CharField(source="artifact_id")
    num_files = serializers.IntegerField(source="artifact.num_files")
    size_bytes = serializers.IntegerField(source="artifact.size_bytes")
    created_at = serializers.DateTimeField()


class PreparationCreateSerializer(StrictSerializer):
    """A preparation that is wanted."""

    name = serializers.CharField(
        max_length=MAX_REFERENCE_CHARS, help_text="The dataset of the main set; others go to name-<role>."
    )
    raw_data = serializers.CharField(
        max_length=MAX_REFERENCE_CHARS, help_text="Id of raw data, or a name: then its newest."
    )
    recipe = serializers.DictField(required=False, help_text="Missing keys take their defaults.")
    general = serializers.CharField(max_length=MAX_REFERENCE_CHARS, required=False, allow_null=True)
    unchanged = serializers.CharField(max_length=MAX_REFERENCE_CHARS, required=False, allow_null=True)
    evaluation_sets = serializers.ListField(
        child=serializers.CharField(max_length=MAX_REFERENCE_CHARS),
        max_length=MAX_DATASETS,
        required=False,
        help_text="Sets in which no training example may stand.",
    )
    base_model = serializers.CharField(
        max_length=MAX_REFERENCE_CHARS,
        required=False,
        allow_null=True,
        help_text="Its tokenizer measures lengths.",
    )


class PreparedSetSerializer(serializers.Serializer[Any]):
    """One set that came out, with what people found in it so far."""

    role = serializers.ChoiceField(choices=DatasetRole.choices)
    dataset_version = serializers.CharField()
    num_examples = serializers.IntegerField()
    num_reviewed = serializers.IntegerField(source="dataset_version.num_reviewed")
    num_bad = serializers.IntegerField(source="dataset_version.num_bad")
    num_to_fix = serializers.IntegerField(source="dataset_version.num_to_fix")


class PreparationSerializer(FollowingSerializer):
    """A data preparation. `report` is the artifact of everything that its job wrote."""

    state = serializers.ChoiceField(choices=PreparationState.choices, read_only=True)
    raw_data = RawDataSerializer(source="raw", read_only=True)
    general = serializers.CharField(read_only=True, allow_null=True)
    unchanged = serializers.CharField(read_only=True, allow_null=True)
    evaluation_sets = serializers.SerializerMethodField()
    base_model = serializers.CharField(read_only=True, allow_null=True)
    sets = PreparedSetSerializer(many=True, read_only=True)
    report = serializers.CharField(source="report_id", read_only=True, allow_null=True)
    links = serializers.SerializerMethodField()

    class Meta:
        model = DataPreparation
        fields = (
            "id",
            "name",
            "state",
            "is_final",
            "raw_data",
            "recipe",
            "general",
            "unchanged",
            "evaluation_sets",
            "base_model",
            "current_job",
            "sets",
            "report",
            "values",
            "failure",
            "created_at",
            "finished_at",
            "links",
        )
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_evaluation_sets(self, row: DataPreparation) -> list[str]:
        """The sets that were searched for leaks."""
        return [str(item) for item in row.evaluation_sets.all()]

    @extend_schema_field(serializers.DictField(child=serializers.URLField()))
    def get_links(self, row: DataPreparation) -> dict[str, str]:
        """Addresses that belong to it; report and card answer once it has succeeded."""
        names = {
            "self": "preparation-detail",
            "report": "preparation-report",
            "card": "preparation-card",
            "page": "admin:training_datapreparation_report",
        }
        return {key: self.absolute(reverse(name, args=[row.pk])) for key, name in names.items()}


class ReviewCreateSerializer(StrictSerializer):
    """A review that is wanted."""

    dataset_version = serializers.CharField(max_length=MAX_REFERENCE_CHARS, help_text="name@number")
    num_examples = serializers.IntegerField(
        min_value=1,
        required=False,
        allow_null=True,
        default=DEFAULT_NUM_EXAMPLES,
        help_text="All examples when there are fewer, or when it is null.",
    )
    seed = serializers.IntegerField(min_value=0, max_value=MAX_SEED, required=False, default=0)
    reviewer = serializers.CharField(
        max_length=150, required=False, allow_null=True, help_text="User name of who is asked to do it."
    )


class ReviewCloseSerializer(StrictSerializer):
    """How a review is to be closed."""

    apply_fixes = serializers.BooleanField(
        required=False, default=True, help_text="Whether the verdicts become a new dataset version."
    )
    allow_open = serializers.BooleanField(
        required=False, default=False, help_text="Whether examples may be left without a verdict."
    )


class VerdictSerializer(StrictSerializer):
    """What a person says of one example; an empty verdict takes one back."""

    verdict = serializers.ChoiceField(choices=ReviewVerdict.choices, allow_blank=True)
    fixed_answer = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        trim_whitespace=False,
        max_length=MAX_ANSWER_CHARACTERS,
        help_text="The answer as it should be, for the verdict fix.",
    )
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=MAX_NOTE_CHARACTERS)
    revision = serializers.IntegerField(
        required=False, min_value=0, help_text="Of the item as it was seen; or send If-Match."
    )


class ReviewItemSerializer(serializers.Serializer[ReviewItem]):
    """One example of a review. `revision` is what a verdict must name."""

    position = serializers.IntegerField()
    example_id = serializers.CharField()
    example = serializers.SerializerMethodField()
    verdict = serializers.CharField()
    fixed_answer = serializers.CharField()
    note = serializers.CharField()
    reviewer = serializers.CharField(allow_null=True)
    reviewed_at = serializers.DateTimeField(allow_null=True)
    revision = serializers.IntegerField()

    @extend_schema_field(serializers.DictField())
    def get_example(self, item: ReviewItem) -> Any:
        """The line of the dataset."""
        return json.loads(item.line)


class ReviewSerializer(serializers.Serializer[ReviewTask]):
    """A review with its counts."""

    id = serializers.UUIDField()
    dataset_version = serializers.CharField()
    state = serializers.ChoiceField(choices=ReviewState.choices)
    seed = serializers.IntegerField()
    num_examples = serializers.IntegerField()
    num_open = serializers.IntegerField()
    num_good = serializers.IntegerField()
    num_bad = serializers.IntegerField()
    num_to_fix = serializers.IntegerField()
    reviewer = serializers.CharField(allow_null=True)
    created_by = serializers.CharField(allow_null=True)
    result = serializers.CharField(allow_null=True, help_text="The dataset version that it resulted in.")
    created_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)
    links = serializers.SerializerMethodField()

    @extend_schema_field(serializers.DictField(child=serializers.URLField()))
    def get_links(self, task: ReviewTask) -> dict[str, str]:
        """Addresses that belong to it."""
        names = {
            "self": "review-detail",
            "items": "review-item-list",
            "page": "admin:training_reviewtask_review",
        }
        return {
            key: absolute_address(reverse(name, args=[task.pk]), self.context) for key, name in names.items()
        }


class ReviewDetailSerializer(ReviewSerializer):
    """A review with all of its examples."""

    items = ReviewItemSerializer(many=True)
