"""Signs of life while the worker stores a large output."""

import time
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from registry.choices import JobState
from registry.models import Job
from registry.services import jobs
from tests.workers.job_folders import enqueue_check
from workers import lifecycle


@pytest.mark.django_db(transaction=True)
def test_a_slow_store_does_not_cost_the_claim(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.JOB_HEARTBEAT_SECONDS = 0.05
    settings.JOB_LAPSED_SECONDS = 0.6
    job = enqueue_check(tmp_path)

    def store_slowly(**_: Any) -> None:
        Job.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now())
        deadline = time.monotonic() + 1.2
        while time.monotonic() < deadline:
            assert jobs.requeue_lapsed_jobs(now=timezone.now()) == 0
            time.sleep(0.1)

    monkeypatch.setattr(lifecycle, "store_output", store_slowly)
    assert lifecycle.run_job(job_id=job.pk, worker="w", should_stop=lambda: False) == JobState.SUCCEEDED
