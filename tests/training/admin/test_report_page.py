"""The page of a training run."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from registry.services.jobs import JobEventRecord
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.training_runs import (
    HOSTILE,
    curve_points,
    fail,
    finding,
    finish,
    make_run,
    metric,
    mini,
    not_finite,
    preflight,
    report,
)
from training.models import MiniConfiguration, TrainingRun

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


@pytest.fixture
def run(store: Any) -> TrainingRun:
    log = JobEventRecord(at=metric(1).at, type="log", level="warning", message=HOSTILE)
    return report(make_run("lora"), *curve_points(), log)


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("anna"))
    return client


def page(client: Client, run: TrainingRun, name: str = "report") -> str:
    response = client.get(reverse(f"admin:training_trainingrun_{name}", args=[run.pk]))
    assert response.status_code == 200
    text = response.content.decode()
    # Whatever a run reports acts nowhere.
    assert "<script>alert" not in text
    assert "\u202e" not in text
    return text


def test_curves_config_and_log(run: TrainingRun, client: Client) -> None:
    text = page(client, run)
    assert text.count('<polyline class="series') == 7  # six charts, the first with two lines
    assert "Memory (GB)" in text
    assert "lora.target_modules" in text
    assert "data-live-url" in text
    assert "&lt;script&gt;" in text


def test_findings_stand_beside_their_marks(store: Any, client: Client) -> None:
    points = curve_points()
    run = report(
        make_run(),
        *points,
        finding(step=51),
        finding("held-out-rises", 151, severity="error"),
        finding(step=151),
    )
    text = page(client, run)
    # Two marks in each of six charts: that of the first finding, and one for the two that begin together.
    assert text.count('<line class="mark') == 12
    assert text.count(">2, 3</text>") == 6
    assert '<line class="mark error"' in text
    assert "Halve the learning rate." in text
    assert page(client, run, "live").count('<line class="mark') == 12


def test_the_preflight_shows_what_is_trained(store: Any, client: Client) -> None:
    run = report(make_run(), preflight())
    text = page(client, run)
    assert '<span class="trained">{&quot;urgency&quot;:&quot;high&quot;}</span>' in text
    assert '<span class="trained special-token">&lt;|im_end|&gt;</span>' in text
    assert '<span class="read special-token">&lt;|im_start|&gt;</span>' in text
    assert "9 of 31 tokens trained, shown in part" in text
    assert "Loss on the few examples" in text
    assert "answer-end-trained" in text


def test_a_failed_run_names_the_rows_of_the_handbook(store: Any, client: Client) -> None:
    run = report(
        make_run(), metric(1, loss=2.0), not_finite(), finding("loss-oscillates", 1, severity="error")
    )
    fail(run, "loss-not-finite", "The loss is not finite in step 151.")
    assert run.failure is not None
    assert run.failure["rows"] == ["loss-not-finite", "loss-oscillates"]
    assert run.failure["message"].endswith("(handbook: loss-not-finite, loss-oscillates)")
    text = page(client, run)
    assert "poisoned-example" in text
    assert "layers.3.q_proj" in text
    assert text.count("not finite</td>") == 2


def test_out_of_memory_is_told_apart_by_when_it_comes(store: Any) -> None:
    early = make_run("early")
    fail(early, "out-of-memory", "The process asked for more memory than there was.")
    assert early.failure is not None and early.failure["rows"] == ["out-of-memory-at-start"]
    late = report(make_run("late", config={"training": {"seed": 1}}), metric(40, loss=1.0))
    fail(late, "out-of-memory", "The process asked for more memory than there was.")
    assert late.failure is not None and late.failure["rows"] == ["out-of-memory-later"]


def test_the_small_experiment_shows_its_verdict(store: Any, client: Client) -> None:
    run = finish(report(make_run(purpose="mini"), mini(passed=False)))
    text = page(client, run)
    assert "Mini failed" in text
    assert "loss-falls" in text


def test_what_is_not_of_the_expected_form_breaks_no_page(store: Any, client: Client) -> None:
    odd = {
        "passed": 1,
        "checks": "x",
        "batches": [{"rows": [{"segments": [1, {"text": 3}]}]}],
        "overfit": [1],
    }
    events = [preflight(), mini(), not_finite()]
    run = report(
        make_run(), *(JobEventRecord(at=e.at, type="record", message=e.message, values=odd) for e in events)
    )
    assert "Preflight" in page(client, run)


def test_variations_and_the_comparison(store: Any, client: Client) -> None:
    run = finish(report(make_run(), *curve_points()))
    assert "Half the learning rate" in page(client, run)
    url = reverse("admin:training_trainingrun_vary", args=[run.pk])
    assert client.get(url).status_code == 405
    response = client.post(url, {"remedy": "lower-rate"})
    child = run.children.get()
    assert response["Location"] == reverse("admin:training_trainingrun_report", args=[child.pk])
    text = page(client, child)
    assert "Beside its relatives" in text
    assert "training.learning_rate" in text
    client.post(url, {"remedy": "more-general-data"})
    assert run.children.count() == 1
    assert "there is no general dataset" in page(client, run)


def test_a_variation_needs_the_right_and_the_token(store: Any) -> None:
    run = finish(make_run())
    url = reverse("admin:training_trainingrun_vary", args=[run.pk])
    reviewer = User.objects.create_user("rita", is_staff=True)
    reviewer.groups.add(Group.objects.get(name="reviewers"))
    client = Client()
    client.force_login(reviewer)
    assert "Half the learning rate" not in page(client, run)
    client.post(url, {"remedy": "lower-rate"})
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_superuser("anna"))
    assert strict.post(url, {"remedy": "lower-rate"}).status_code == 403
    assert not run.children.exists()


def test_status_and_cancel(run: TrainingRun, client: Client) -> None:
    status = client.get(reverse("admin:training_trainingrun_status", args=[run.pk])).json()
    assert (status["state"], status["job"]["kind"]) == ("running", "train")
    assert client.get(reverse("admin:training_trainingrun_cancel", args=[run.pk])).status_code == 405
    client.post(reverse("admin:training_trainingrun_cancel", args=[run.pk]))
    run.refresh_from_db()
    assert run.state == "cancelled"


def test_every_admin_page_of_the_app_opens(store: Any, client: Client) -> None:
    report(make_run("lora"), metric(1, loss=1.0), preflight(), finding(step=1))
    for model in ("trainingrun", "metricpoint", "trainingfinding"):
        listing = client.get(reverse(f"admin:training_{model}_changelist"), {"q": "lora"})
        assert listing.status_code == 200
        row = listing.context["cl"].model.objects.first()
        assert client.get(reverse(f"admin:training_{model}_change", args=[row.pk])).status_code == 200
        assert client.get(reverse(f"admin:training_{model}_add")).status_code == 403
    assert client.get(reverse("admin:training_overfitpass_changelist")).status_code == 200


def test_the_mini_configuration_is_changed_by_a_new_row(store: Any, client: Client) -> None:
    url = reverse("admin:training_miniconfiguration_add")
    assert "max_examples" in client.get(url).content.decode()
    bad = client.post(url, {"overlay": '{"training": {"max_stepz": 1, "seed": -1}}'})
    assert "max_stepz" in bad.content.decode() and "training.seed" in bad.content.decode()
    for num in (50, 60):
        client.post(url, {"overlay": f'{{"training": {{"max_steps": {num}}}}}'})
    overlays = MiniConfiguration.objects.values_list("overlay", "is_active")
    assert list(overlays) == [
        ({"training": {"max_steps": 60}}, True),
        ({"training": {"max_steps": 50}}, False),
    ]
    assert client.get(reverse("admin:training_miniconfiguration_changelist")).status_code == 200
    row = MiniConfiguration.objects.first()
    assert row is not None
    assert client.get(reverse("admin:training_miniconfiguration_change", args=[row.pk])).status_code == 200


def test_rights(run: TrainingRun) -> None:
    stranger = Client()
    stranger.force_login(User.objects.create_user("sam"))
    for name in ("report", "live"):
        url = reverse(f"admin:training_trainingrun_{name}", args=[run.pk])
        assert stranger.get(url).status_code == 302


def test_a_general_dataset_is_taken_for_the_first_remedy(store: Any, client: Client) -> None:
    make_dataset("chat", "general", num=20)
    run = finish(make_run())
    client.post(reverse("admin:training_trainingrun_vary", args=[run.pk]), {"remedy": "more-general-data"})
    # 3 examples of the task: g / (3 + g) >= 0.15 needs one.
    assert {str(item) for item in run.children.get().datasets.all()} == {"tickets-train@1", "chat-part@1"}
