"""The page of a training run."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from registry.services.actors import SYSTEM
from registry.services.jobs import JobEventRecord, claim_job, record_events
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.registry import make_base_model
from training.models import TrainingRun
from training.services.runs import TrainingRequest, create_training_run, reconcile_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def run(store: Any) -> TrainingRun:
    make_base_model()
    make_dataset("tickets-train", "train", num=3)
    request = TrainingRequest(
        name="lora", base_model_name="tiny", datasets=["tickets-train@1"], holdout=None, config={}
    )
    made = create_training_run(request=request, actor=SYSTEM)
    assert made.job is not None
    claim = claim_job(job_id=made.job.pk, worker="w")
    assert claim is not None
    now = timezone.now()
    points = [JobEventRecord(at=now, type="metric", step=s, values={"loss": 2.0 / s}) for s in range(1, 40)]
    log = JobEventRecord(at=now, type="log", level="warning", message=f"\u202e{SCRIPT}")
    record_events(claim=claim, events=[*points, log])
    reconcile_all()
    made.refresh_from_db()
    return made


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("anna"))
    return client


def test_curves_config_and_log(run: TrainingRun, client: Client) -> None:
    text = client.get(reverse("admin:training_trainingrun_report", args=[run.pk])).content.decode()
    assert '<polyline class="series"' in text
    assert "lora.target_modules" in text
    assert "data-live-url" in text
    assert SCRIPT not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text


def test_status_and_cancel(run: TrainingRun, client: Client) -> None:
    status = client.get(reverse("admin:training_trainingrun_status", args=[run.pk])).json()
    assert (status["state"], status["job"]["kind"]) == ("running", "train")
    assert client.get(reverse("admin:training_trainingrun_cancel", args=[run.pk])).status_code == 405
    client.post(reverse("admin:training_trainingrun_cancel", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == "cancelled"


def test_every_admin_page_of_the_app_opens(run: TrainingRun, client: Client) -> None:
    for model in ("trainingrun", "metricpoint"):
        listing = client.get(reverse(f"admin:training_{model}_changelist"), {"q": "lora"})
        assert listing.status_code == 200
        row = listing.context["cl"].model.objects.first()
        assert client.get(reverse(f"admin:training_{model}_change", args=[row.pk])).status_code == 200
        assert client.get(reverse(f"admin:training_{model}_add")).status_code == 403


def test_rights(run: TrainingRun) -> None:
    stranger = Client()
    stranger.force_login(User.objects.create_user("sam"))
    assert stranger.get(reverse("admin:training_trainingrun_report", args=[run.pk])).status_code == 302
