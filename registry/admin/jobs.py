"""Jobs: what runs, what happened and why; waiting and running ones can be cancelled."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from registry.admin.base import ReadOnlyAdmin, ReadOnlyInline, actor_of
from registry.choices import TokenScope
from registry.errors import AssayError
from registry.models import Job, JobAttempt
from registry.selectors.jobs import compute_duration_seconds, list_latest_job_events
from registry.services.jobs import cancel_job
from registry.visible_text import visible_text

MAX_SHOWN_EVENTS = 200
MAX_SHOWN_MESSAGE_CHARS = 500


class JobAttemptInline(ReadOnlyInline):
    """The attempts at a job."""

    model = JobAttempt
    fields = (
        *("number", "worker", "started_at", "finished_at"),
        *("outcome", "failure_class", "reason", "workdir"),
    )
    readonly_fields = fields

    @admin.display(description="failure")
    def reason(self, attempt: JobAttempt) -> SafeString | str:
        """Why the attempt failed."""
        failure = attempt.failure or {}
        if not failure:
            return ""
        return format_html("{}: {}", failure["code"], visible_text(str(failure["message"]), limit=500))


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    """Jobs of all kinds."""

    list_display = (
        *("subject", "kind", "state", "queue", "progress"),
        *("attempt", "duration", "worker", "created_at"),
    )
    list_filter = ("state", "kind", "queue")
    search_fields = ("id", "subject", "worker", "cache_key")
    ordering = ("-created_at",)
    fields = (
        "id",
        *("subject", "kind", "state", "queue", "progress", "reason", "story"),
        *("attempt", "max_attempts", "time_limit_seconds", "duration", "worker", "heartbeat_at"),
        *("is_cancel_requested", "enqueued_at", "started_at", "finished_at", "created_at", "created_by"),
        *("code_version", "cache_key", "inputs", "config", "values", "output_artifact"),
    )
    readonly_fields = fields
    inlines = (JobAttemptInline,)
    list_select_related = ("created_by",)
    actions = ("cancel_jobs",)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Whoever may submit."""
        return actor_of(request).has_scope(TokenScope.SUBMIT)

    @admin.display(description="progress", ordering="fraction")
    def progress(self, job: Job) -> SafeString:
        """Share of the work done, and the latest message."""
        return format_html("{} % {}", f"{100 * job.fraction:.0f}", visible_text(job.message, limit=120))

    @admin.display(description="duration")
    def duration(self, job: Job) -> str:
        """How long the latest attempt ran, or has been running."""
        seconds = compute_duration_seconds(job, now=timezone.now())
        return "" if seconds is None else f"{seconds:.1f} s"

    @admin.display(description="failure")
    def reason(self, job: Job) -> SafeString | str:
        """Why the job, or its latest attempt, failed, with every detail."""
        failure = job.failure or {}
        if not failure:
            return ""
        rows = (
            (
                str(item.get("where") or ""),
                visible_text(str(item.get("message"))),
                str(item.get("remedy") or ""),
            )
            for item in failure.get("details", [])
        )
        details = format_html_join("", "<li>{} {} {}</li>", rows)
        kind, code, message = failure["failure_class"], failure["code"], visible_text(str(failure["message"]))
        return format_html("{} ({}): {}<ul>{}</ul>", code, kind, message, details)

    @admin.display(description="story")
    def story(self, job: Job) -> SafeString:
        """The latest events, oldest of them first."""
        rows = (
            (
                event.sequence,
                f"{event.at:%Y-%m-%d %H:%M:%S}",
                event.level or event.type,
                visible_text(event.message or str(event.values), limit=MAX_SHOWN_MESSAGE_CHARS),
            )
            for event in list_latest_job_events(job=job, limit=MAX_SHOWN_EVENTS)
        )
        body = format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", rows)
        return format_html("<table>{}</table>", body)

    @admin.action(description="Cancel the selected jobs", permissions=["cancel"])
    def cancel_jobs(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        """Cancels waiting jobs at once and asks running ones to stop."""
        for job in jobs:
            try:
                cancelled = cancel_job(job_id=job.pk, actor=actor_of(request))
            except AssayError as error:
                messages.error(request, f"{job}: {error.detail}")
                continue
            messages.info(request, f"{job} is {cancelled.state}; a running job ends within seconds.")
