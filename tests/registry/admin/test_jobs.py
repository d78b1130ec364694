"""Job pages: untrusted text is shown escaped and visible; waiting jobs can be cancelled."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from registry.choices import JobEventType, JobState
from registry.models import Job
from registry.services.actors import SYSTEM
from registry.services.jobs import JobEventRecord, claim_job, enqueue_job, fail_job, record_events

pytestmark = pytest.mark.django_db
NASTY = "<script>alert(1)</script>\u202e"


@pytest.fixture
def job() -> Job:
    return enqueue_job(
        kind="merge", inputs={}, config={}, code_version="merge@1", subject="tickets@1", actor=SYSTEM
    )


def test_the_page_of_a_failed_job_shows_why_and_runs_nothing(admin_client: Any, job: Job) -> None:
    claim = claim_job(job_id=job.pk, worker="cpu@m")
    assert claim is not None
    event = JobEventRecord(at=timezone.now(), type=JobEventType.LOG, level="info", message=NASTY)
    record_events(claim=claim, events=[event])
    detail = {"code": "a", "message": NASTY, "where": NASTY, "remedy": NASTY}
    fail_job(claim=claim, failure_class="user", code="bad-input", message=NASTY, details=[detail])
    page = admin_client.get(reverse("admin:registry_job_change", args=(job.pk,))).content.decode()
    assert "bad-input" in page
    assert "<script>alert(1)" not in page
    assert page.count("&lt;script&gt;alert(1)") >= 4
    listed = admin_client.get(reverse("admin:registry_job_changelist"))
    assert listed.status_code == 200 and "tickets@1" in listed.content.decode()


def test_waiting_jobs_are_cancelled_from_the_list(admin_client: Any, job: Job) -> None:
    values = {"action": "cancel_jobs", "_selected_action": [str(job.pk)]}
    admin_client.post(reverse("admin:registry_job_changelist"), values)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_people_without_the_right_see_no_way_to_cancel(client: Any, job: Job) -> None:
    client.force_login(User.objects.create_user("reader", is_staff=True))
    assert client.get(reverse("admin:registry_job_change", args=(job.pk,))).status_code == 200
    client.post(
        reverse("admin:registry_job_changelist"),
        {"action": "cancel_jobs", "_selected_action": [str(job.pk)]},
    )
    job.refresh_from_db()
    assert job.state == JobState.QUEUED
