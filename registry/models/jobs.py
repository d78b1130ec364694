"""Jobs: the database side of the work that child processes do."""

import uuid

from django.db import models
from django.db.models import Q

from registry.choices import ACTIVE_JOB_STATES, FailureClass, JobEventType, JobKind, JobQueue, JobState
from registry.models.artifacts import Artifact
from registry.models.fields import Recorded, sha256_field


class Job(Recorded):
    """One unit of work.

    `inputs` maps the name of an input folder to artifacts: {"adapter": {"artifact": digest}} or, for a
    folder put together from several artifacts, {"suite": {"files": {"holdout.jsonl": {"artifact": digest,
    "path": "data.jsonl"}}, "inline": {"suite.json": {...}}}}. `cache_key` is the digest of kind, code
    version, inputs and configuration; among active jobs it is unique, so that the same work is never done
    twice at once. `hints` is what may spare the job work without changing its result, such as checks that
    passed before; it is no part of the cache key, and a job that is found again keeps the hints that it was
    made with. `claim` is the fencing token of the present attempt: a result with another claim is refused.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=16, choices=JobKind.choices)
    queue = models.CharField(max_length=16, choices=JobQueue.choices)
    state = models.CharField(max_length=16, choices=JobState.choices, default=JobState.QUEUED)
    cache_key = sha256_field()
    code_version = models.CharField(max_length=32)
    inputs = models.JSONField(default=dict)
    config = models.JSONField(default=dict)
    hints = models.JSONField(default=dict, blank=True)
    subject = models.CharField(max_length=160, blank=True, default="")
    attempt = models.PositiveIntegerField(default=0)
    max_attempts = models.PositiveIntegerField(default=3)
    time_limit_seconds = models.PositiveIntegerField(default=3600)
    claim = models.UUIDField(null=True, blank=True)
    worker = models.CharField(max_length=160, blank=True, default="")
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    is_cancel_requested = models.BooleanField(default=False)
    fraction = models.FloatField(default=0.0)
    message = models.CharField(max_length=500, blank=True, default="")
    failure = models.JSONField(null=True, blank=True)
    values = models.JSONField(default=dict, blank=True)
    output_artifact = models.ForeignKey(
        Artifact, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    enqueued_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    next_event_sequence = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=("state", "heartbeat_at")), models.Index(fields=("cache_key",)))
        constraints = (
            models.UniqueConstraint(
                fields=("cache_key",),
                condition=Q(state__in=sorted(ACTIVE_JOB_STATES)),
                name="active_job_cache_key_unique",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.subject or self.id}"


class JobAttempt(models.Model):
    """One try at a job: who made it and how it ended. `failure_class` is empty unless it failed."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    claim = models.UUIDField()
    worker = models.CharField(max_length=160)
    workdir = models.CharField(max_length=500, blank=True, default="")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=16, blank=True, default="")
    failure_class = models.CharField(max_length=16, choices=FailureClass.choices, blank=True, default="")
    failure = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("job", "number"), name="job_attempt_unique"),)

    def __str__(self) -> str:
        return f"{self.job_id} attempt {self.number}"


class JobEvent(models.Model):
    """One line of a job's story, in order of `sequence`."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    sequence = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField(default=0)
    at = models.DateTimeField()
    type = models.CharField(max_length=16, choices=JobEventType.choices)
    level = models.CharField(max_length=8, blank=True, default="")
    message = models.TextField(blank=True, default="")
    fraction = models.FloatField(null=True, blank=True)
    step = models.IntegerField(null=True, blank=True)
    values = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("sequence",)
        constraints = (models.UniqueConstraint(fields=("job", "sequence"), name="job_event_sequence_unique"),)

    def __str__(self) -> str:
        return f"{self.job_id}#{self.sequence}"
