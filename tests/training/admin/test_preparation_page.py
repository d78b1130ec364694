"""The pages of preparations and dataset versions: the card, what can be done, and hostile text."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from registry.models import DatasetVersion
from tests.fixtures.evaluation import break_job, make_dataset
from tests.fixtures.preparations import CSV, finish_preparation, make_preparation, prepared_files
from tests.fixtures.registry import jsonl, sha256_of
from training.admin.card_page import build_contents
from training.models import DataPreparation, ReviewTask
from training.services.preparations import reconcile_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

SCRIPT = "<script>alert(1)</script>"
HOSTILE = f"\u202e{SCRIPT}"
STEP = {
    "name": "repair_text",
    "version": 1,
    "parameters": {"threshold": 0.85, "languages": ["zh", "en"]},
    "num_in": 10,
    "num_kept": 9,
    "num_changed": 1,
    "num_flagged": 0,
    "num_dropped": 1,
    "reasons": {"mojibake": 1, "empty": 1},
    "shown": [
        {
            "example_id": f"a{HOSTILE}",
            "reasons": ["mojibake"],
            "detail": HOSTILE,
            "before": {"input": "The cafÃ© opens at nine in the morning", "answer": HOSTILE},
            "after": {"input": "The café opens at nine in the morning", "answer": HOSTILE},
        },
        {
            "example_id": "b",
            "reasons": ["empty"],
            "detail": "",
            "before": {"input": HOSTILE, "answer": ""},
            "after": None,
        },
    ],
    "facts": {},
}
FINDING = {
    "set": "train",
    "code": "field-imbalanced",
    "severity": "warning",
    "message": HOSTILE,
    "where": HOSTILE,
    "remedy": HOSTILE,
    "num_examples": 7,
    "example_ids": [HOSTILE],
    "source": "MISSION C7",
}
LEAKAGE = {
    "matrix": [
        {
            "left": "train",
            "right": "holdout",
            "num_exact": 1,
            "num_near": 2,
            "pairs": [{"left_id": HOSTILE, "right_id": "h", "kind": "near", "similarity": 0.9}],
        }
    ]
}


def hostile_files() -> dict[str, bytes]:
    files = prepared_files(steps=[STEP], findings=[FINDING], leakage=LEAKAGE)
    report = json.loads(files["report.json"])
    report["sets"]["train"]["card"]["fields"] = {HOSTILE: {HOSTILE: 3}}
    bad = {"file": HOSTILE, "row": 2, "place": "", "code": "not-json", "message": HOSTILE, "excerpt": HOSTILE}
    return files | {"report.json": json.dumps(report).encode(), "bad_rows.jsonl": jsonl(bad)}


@pytest.fixture
def row(store: Any) -> DataPreparation:
    made = make_preparation()
    finish_preparation(made, hostile_files())
    reconcile_all()
    made.refresh_from_db()
    assert made.state == "succeeded", made.failure
    return made


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("anna"))
    return client


def page(name: str, *args: Any) -> str:
    return reverse(f"admin:training_{name}", args=args)


def test_the_card(row: DataPreparation, client: Client) -> None:
    answer = client.get(page("datapreparation_report", row.pk))
    text = answer.content.decode()
    assert answer.status_code == 200
    for shown in (
        sha256_of(CSV),
        "tickets@1",
        "tickets-holdout@1",
        "field-imbalanced",
        "1 / 2",
        "<rect",
        "mojibake 1",
    ):
        assert shown in text, shown
    # What a step changed is marked.
    assert "<del>" in text and "<ins>" in text
    assert SCRIPT not in text and "\u202e" not in text
    assert text.count("&lt;script&gt;") >= 10
    assert "onclick" not in text and "style=" not in text.split('<div class="report">')[1]


def test_files_are_attachments(row: DataPreparation, client: Client) -> None:
    answer = client.get(page("datapreparation_file", row.pk, "card"))
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert b"".join(answer) == b"# tickets\n"
    assert client.get(page("datapreparation_file", row.pk, "secret")).status_code == 404


def test_while_it_waits(client: Client) -> None:
    waiting = make_preparation()
    text = client.get(page("datapreparation_report", waiting.pk)).content.decode()
    assert "data-live-url" in text and "Findings" not in text
    status = client.get(page("datapreparation_status", waiting.pk)).json()
    assert (status["state"], status["is_final"], status["job"]["kind"]) == ("queued", False, "prepare")
    assert client.get(page("datapreparation_file", waiting.pk, "card")).status_code == 404
    assert client.get(page("datapreparation_cancel", waiting.pk)).status_code == 405
    client.post(page("datapreparation_cancel", waiting.pk))
    waiting.refresh_from_db()
    assert waiting.state == "cancelled"
    client.post(page("datapreparation_retry", waiting.pk))
    waiting.refresh_from_db()
    assert waiting.state == "queued"


def test_a_failure_names_every_fault(client: Client) -> None:
    failed = make_preparation()
    assert failed.job is not None
    break_job(failed.job, failure_class="user", code="no-examples", message=HOSTILE)
    reconcile_all()
    text = client.get(page("datapreparation_report", failed.pk)).content.decode()
    assert "&lt;script&gt;" in text and SCRIPT not in text and "Try again" in text


def test_the_page_of_a_version(row: DataPreparation, client: Client) -> None:
    version = DatasetVersion.objects.get(dataset__name="tickets")
    text = client.get(page("datasetversion_card", version.pk)).content.decode()
    assert "/report/" in text and "<rect" in text and "Nobody has looked" in text
    assert SCRIPT not in text
    link = reverse("admin:registry_datasetversion_change", args=[version.pk])
    assert page("datasetversion_card", version.pk) in client.get(link).content.decode()
    started = client.post(page("datasetversion_start_review", version.pk), {"num_examples": 3})
    task = ReviewTask.objects.get()
    assert started["Location"] == page("reviewtask_review", task.pk)
    assert (task.num_examples, task.seed, task.created_by) == (3, 0, User.objects.get(username="anna"))
    client.post(page("datasetversion_start_review", version.pk), {"num_examples": 3})
    assert {it.seed for it in ReviewTask.objects.all()} == {0, 1}
    assert client.get(page("datasetversion_card", 10**9)).status_code == 404


def test_a_version_that_was_uploaded_ready(client: Client) -> None:
    version = make_dataset("ready", "ood", num=4)
    text = client.get(page("datasetversion_card", version.pk)).content.decode()
    assert "Review all 4" in text and "Contents" not in text
    client.post(page("datasetversion_start_review", version.pk), {"is_full": "on"})
    assert ReviewTask.objects.get().num_examples == 4


def test_every_admin_page_of_data_opens(row: DataPreparation, client: Client) -> None:
    client.post(page("datasetversion_start_review", row.sets.all()[0].dataset_version_id))
    for model in ("datapreparation", "rawdata", "reviewtask", "reviewitem"):
        listing = client.get(page(f"{model}_changelist"), {"q": "tickets"})
        assert listing.status_code == 200
        first = listing.context["cl"].model.objects.first()
        assert client.get(page(f"{model}_change", first.pk)).status_code == 200


def test_rights(row: DataPreparation) -> None:
    reader = Client()
    reader.force_login(User.objects.create_user("reader", is_staff=True))
    text = reader.get(page("datapreparation_report", row.pk)).content.decode()
    assert "Start a review" not in text and "Cancel" not in text
    version_id = row.sets.all()[0].dataset_version_id
    reader.post(page("datasetversion_start_review", version_id))
    assert not ReviewTask.objects.exists()
    stranger = Client()
    stranger.force_login(User.objects.create_user("stranger"))
    assert stranger.get(page("datapreparation_report", row.pk)).status_code == 302


def test_shares_by_hand() -> None:
    contents = build_contents(
        {"fields": {"urgency": {"low": 1, "high": 3}}, "scripts": {}, "num_examples": 4}
    )
    (distribution,) = contents.distributions
    assert [(share.value, share.count, share.percent) for share in distribution.shares] == [
        ("high", 3, 75.0),
        ("low", 1, 25.0),
    ]
    assert contents.facts == (("Examples", 4),)
    many = build_contents({"sources": {str(number): 1 for number in range(20)}})
    assert (len(many.distributions[0].shares), many.distributions[0].num_more) == (12, 8)
    assert build_contents({"tags": {}}).is_empty
