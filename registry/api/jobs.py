"""Jobs over REST: their state, their story while they run, and cancelling them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, page_schema, query_choice, query_integer
from registry.api.idempotency import idempotent
from registry.choices import JobEventType, JobKind, JobQueue, JobState, TokenScope
from registry.models import Job, JobEvent
from registry.selectors.jobs import compute_duration_seconds, get_job, list_job_events, list_jobs
from registry.services.jobs import cancel_job


class JobSerializer(serializers.ModelSerializer[Job]):
    """One job as clients see it."""

    kind = serializers.ChoiceField(choices=JobKind.choices, read_only=True)
    state = serializers.ChoiceField(choices=JobState.choices, read_only=True)
    queue = serializers.ChoiceField(choices=JobQueue.choices, read_only=True)
    duration_seconds = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields = (
            "id",
            "kind",
            "state",
            "queue",
            "attempt",
            "max_attempts",
            "fraction",
            "message",
            "failure",
            "is_cancel_requested",
            "created_at",
            "started_at",
            "finished_at",
            "duration_seconds",
            "subject",
        )
        read_only_fields = fields

    def get_duration_seconds(self, job: Job) -> float | None:
        """How long the latest attempt ran or has been running."""
        return compute_duration_seconds(job, now=self._now())

    def _now(self) -> datetime:
        return timezone.now()


class JobEventSerializer(serializers.ModelSerializer[JobEvent]):
    """One line of a job's story."""

    type = serializers.ChoiceField(choices=JobEventType.choices, read_only=True)

    class Meta:
        model = JobEvent
        fields = ("sequence", "attempt", "at", "type", "level", "message", "fraction", "step", "values")
        read_only_fields = fields


class JobEventsSerializer(serializers.Serializer[Any]):
    """A stretch of a job's story."""

    results = JobEventSerializer(many=True)


class JobListView(AssayView):
    """All jobs."""

    scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {"GET": (TokenScope.READ,)}

    @extend_schema(
        operation_id="jobs_list",
        parameters=[
            OpenApiParameter("kind", str, enum=JobKind.values),
            OpenApiParameter("state", str, enum=JobState.values),
        ],
        responses=page_schema(JobSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists jobs, newest first."""
        jobs = list_jobs(
            kind=query_choice(request, "kind", JobKind.values),
            state=query_choice(request, "state", JobState.values),
        )
        return self.page_of(jobs, JobSerializer)


class JobView(AssayView):
    """One job."""

    scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {"GET": (TokenScope.READ,)}

    @extend_schema(operation_id="jobs_retrieve", responses=JobSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        """Shows a job."""
        return Response(JobSerializer(get_job(job_id)).data)


class JobEventsView(AssayView):
    """The story of one job."""

    scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {"GET": (TokenScope.READ,)}

    @extend_schema(
        operation_id="jobs_events",
        parameters=[
            OpenApiParameter("after", int, description="Sequence number of the last event that is known.")
        ],
        responses=JobEventsSerializer,
    )
    def get(self, request: Request, job_id: UUID) -> Response:
        """Lists at most 200 events after a sequence number, in their order; ask again from the last one."""
        after = query_integer(request, "after", default=0) or 0
        events = list_job_events(job=get_job(job_id), after=after)
        return Response({"results": JobEventSerializer(events, many=True).data})


class JobCancelView(AssayView):
    """Cancelling one job."""

    scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {"POST": (TokenScope.SUBMIT,)}

    @extend_schema(operation_id="jobs_cancel", request=None, responses=JobSerializer)
    @idempotent
    def post(self, request: Request, job_id: UUID) -> Response:
        """Cancels a waiting job at once and asks a running one to stop; an ended job stays as it is."""
        return Response(JobSerializer(cancel_job(job_id=job_id, actor=self.actor)).data)
