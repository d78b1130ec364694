"""Bodies of requests and answers about the handbook and the incident register."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from registry.api.strict import ReasonField, StrictSerializer
from training.api.serializers import absolute_address
from training.choices import CheckAnswer, IncidentEntryKind, IncidentOpener, IncidentState, SymptomOrigin
from training.engine.handbook.rows import SymptomClass
from training.models import Incident, IncidentEntry, Symptom, SymptomText
from training.models.incidents import MAX_TITLE_CHARACTERS
from training.selectors.handbook import choose_text
from training.selectors.incidents import incident_etag, word_check_question
from training.selectors.quarterly import QuarterReview
from training.services.incident_requests import MAX_RUN_ID_CHARACTERS, MAX_STEP, MAX_TEXT_CHARACTERS

_CLASSES = [(item.value, item.value) for item in SymptomClass]


class HandbookRowSerializer(serializers.Serializer[Symptom]):
    """A row of the handbook, its text in the language that was asked for, or in `language` where it has
    none. `is_edited`: people of this server wrote it, and no newer shipped text takes its place.
    """

    code = serializers.CharField()
    symptom_class = serializers.ChoiceField(choices=_CLASSES)
    position = serializers.IntegerField()
    origin = serializers.ChoiceField(choices=SymptomOrigin.choices)
    language = serializers.SerializerMethodField()
    symptom = serializers.SerializerMethodField()
    causes = serializers.SerializerMethodField()
    treatment = serializers.SerializerMethodField()
    source = serializers.SerializerMethodField()  # type: ignore[assignment]  # fields may be called so
    detectors = serializers.ListField(child=serializers.CharField())
    is_edited = serializers.SerializerMethodField()
    edited_by = serializers.CharField(allow_null=True)
    edited_at = serializers.DateTimeField(allow_null=True)
    num_incidents = serializers.IntegerField()

    def get_language(self, row: Symptom) -> str:
        """The language of the texts."""
        return self._text(row).language

    def get_symptom(self, row: Symptom) -> str:
        """What is seen."""
        return self._text(row).symptom

    def get_causes(self, row: Symptom) -> list[str]:
        """The usual causes, the most frequent one first."""
        return list(self._text(row).causes)

    def get_treatment(self, row: Symptom) -> list[str]:
        """What to do, in this order."""
        return list(self._text(row).treatment)

    def get_source(self, row: Symptom) -> str:
        """Where it stands."""
        return self._text(row).source

    def get_is_edited(self, row: Symptom) -> bool:
        """Whether people of this server wrote it."""
        return row.edited_at is not None

    def _text(self, row: Symptom) -> SymptomText:
        return choose_text(row, self.context["language"]) or SymptomText(row=row)


class IncidentCreateSerializer(StrictSerializer):
    """An incident that a person opens."""

    title = serializers.CharField(max_length=MAX_TITLE_CHARACTERS)
    symptom = serializers.CharField(
        max_length=MAX_RUN_ID_CHARACTERS,
        required=False,
        allow_null=True,
        help_text="Code of a row of the handbook; null for what it does not know.",
    )
    training_run = serializers.UUIDField(required=False, allow_null=True)
    evaluation_run = serializers.CharField(
        max_length=MAX_RUN_ID_CHARACTERS, required=False, allow_blank=True, help_text="Id of an evaluation."
    )
    first_step = serializers.IntegerField(
        min_value=0, max_value=MAX_STEP, required=False, allow_null=True, help_text="Where it begins."
    )
    found = serializers.CharField(
        max_length=MAX_TEXT_CHARACTERS, required=False, allow_blank=True, help_text="How it was found."
    )
    cause = serializers.CharField(max_length=MAX_TEXT_CHARACTERS, required=False, allow_blank=True)
    fix = serializers.CharField(max_length=MAX_TEXT_CHARACTERS, required=False, allow_blank=True)


class RevisionSerializer(StrictSerializer):
    """A change of an incident as it was seen."""

    revision = serializers.IntegerField(
        required=False, min_value=0, help_text="Of the incident as it was seen; or send If-Match."
    )


class IncidentEditSerializer(RevisionSerializer):
    """What is to change of an incident; what is not named stays as it is."""

    title = serializers.CharField(max_length=MAX_TITLE_CHARACTERS, required=False)
    symptom = serializers.CharField(max_length=MAX_RUN_ID_CHARACTERS, required=False, allow_null=True)
    evaluation_run = serializers.CharField(max_length=MAX_RUN_ID_CHARACTERS, required=False, allow_blank=True)
    first_step = serializers.IntegerField(min_value=0, max_value=MAX_STEP, required=False, allow_null=True)
    found = serializers.CharField(max_length=MAX_TEXT_CHARACTERS, required=False, allow_blank=True)
    cause = serializers.CharField(max_length=MAX_TEXT_CHARACTERS, required=False, allow_blank=True)
    fix = serializers.CharField(max_length=MAX_TEXT_CHARACTERS, required=False, allow_blank=True)


class IncidentResolveSerializer(RevisionSerializer):
    """Why it was, and what was done about it."""

    cause = serializers.CharField(max_length=MAX_TEXT_CHARACTERS)
    fix = serializers.CharField(max_length=MAX_TEXT_CHARACTERS)


class IncidentDismissSerializer(RevisionSerializer):
    """Why it is no incident."""

    reason = ReasonField()


class CheckAnswerSerializer(RevisionSerializer):
    """The check that was made, or the reason why there is none."""

    answer = serializers.ChoiceField(choices=CheckAnswer.choices)
    text = serializers.CharField(
        max_length=MAX_TEXT_CHARACTERS, help_text="The check's code or address, or the reason."
    )


class IncidentStepSerializer(StrictSerializer):
    """A step that was taken."""

    text = serializers.CharField(max_length=MAX_TEXT_CHARACTERS)


class IncidentEntrySerializer(serializers.Serializer[IncidentEntry]):
    """A line in the log of an incident."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    kind = serializers.ChoiceField(choices=IncidentEntryKind.choices)
    detector = serializers.CharField()
    text = serializers.CharField()


class IncidentSerializer(serializers.Serializer[Incident]):
    """An incident. `etag` is what a change must name; `check_question` is what people are asked when the
    symptom recurs, null when nothing is asked.
    """

    number = serializers.IntegerField()
    title = serializers.CharField()
    symptom = serializers.CharField(source="symptom_id", allow_null=True)
    state = serializers.ChoiceField(choices=IncidentState.choices)
    opened_by = serializers.ChoiceField(choices=IncidentOpener.choices)
    created_by = serializers.CharField(allow_null=True)
    training_run = serializers.UUIDField(source="training_run_id", allow_null=True)
    evaluation_run = serializers.CharField()
    first_step = serializers.IntegerField(allow_null=True)
    fingerprint = serializers.CharField()
    found = serializers.CharField()
    cause = serializers.CharField()
    fix = serializers.CharField()
    opened_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)
    asks_for_check = serializers.BooleanField()
    check_answer = serializers.CharField()
    check_text = serializers.CharField()
    check_by = serializers.CharField(allow_null=True)
    check_at = serializers.DateTimeField(allow_null=True)
    etag = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    def get_etag(self, incident: Incident) -> str:
        """The incident's ETag."""
        return incident_etag(incident)

    @extend_schema_field(serializers.DictField(child=serializers.URLField()))
    def get_links(self, incident: Incident) -> dict[str, str]:
        """Addresses that belong to it."""
        names = {
            "self": "incident-detail",
            "entries": "incident-entry-list",
            "page": "admin:training_incident_page",
        }
        return {
            key: absolute_address(reverse(name, args=[incident.number]), self.context)
            for key, name in names.items()
        }


class IncidentDetailSerializer(IncidentSerializer):
    """An incident with the configuration of its run and the question for a check."""

    configuration = serializers.DictField()
    check_question = serializers.SerializerMethodField()

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_check_question(self, incident: Incident) -> str | None:
        """What people are asked."""
        return word_check_question(incident)


class SymptomCountSerializer(serializers.Serializer[Any]):
    """One row of the handbook in a quarter; `code` is null for incidents without a row."""

    code = serializers.CharField(allow_null=True)
    symptom = serializers.CharField()
    num_opened = serializers.IntegerField()
    num_resolved = serializers.IntegerField()
    is_new = serializers.BooleanField()


class ListedRowSerializer(serializers.Serializer[Any]):
    """A row of the handbook in a list."""

    code = serializers.CharField()
    symptom = serializers.CharField()


class ListedIncidentSerializer(serializers.Serializer[Any]):
    """An incident in a list."""

    number = serializers.IntegerField()
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=IncidentState.choices)
    symptom = serializers.CharField(allow_null=True)


class RepeatedSymptomSerializer(serializers.Serializer[Any]):
    """A symptom that recurred and is no check yet; `incidents` are those that ask for it."""

    code = serializers.CharField()
    num_occurrences = serializers.IntegerField()
    incidents = serializers.ListField(child=serializers.IntegerField())


class QuarterReviewSerializer(serializers.Serializer[QuarterReview]):
    """What a quarter's incidents say; it ends before `ends_at`. Lists hold 200 members at most."""

    quarter = serializers.CharField()
    begins_at = serializers.DateTimeField(source="quarter.begins_at")
    ends_at = serializers.DateTimeField(source="quarter.ends_at")
    num_opened = serializers.IntegerField()
    num_dismissed = serializers.IntegerField()
    num_resolved = serializers.IntegerField()
    median_seconds_to_resolve = serializers.FloatField(allow_null=True)
    by_symptom = SymptomCountSerializer(many=True)
    new_symptoms = ListedRowSerializer(many=True)
    rows_added = ListedRowSerializer(many=True)
    rows_to_add = ListedIncidentSerializer(many=True)
    repeated = RepeatedSymptomSerializer(many=True)
    num_open = serializers.IntegerField()
    open_incidents = ListedIncidentSerializer(many=True)
    never_occurred = ListedRowSerializer(many=True)
