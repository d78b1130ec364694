"""The report page, rendered with what a hostile model may have written."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from evaluation.models import Decision, EvaluationRun, Override
from evaluation.services.overrides import request_override
from evaluation.services.pipeline import advance_all
from evaluation.services.submissions import SubmissionRequest, submit
from registry.models import Channel
from registry.services.actors import SYSTEM, actor_of_user
from registry.services.channels import create_channel
from tests.fixtures.evaluation import (
    candidate_rows,
    finish_awaited,
    finish_check,
    finish_evaluation,
    make_decided_run,
    make_suite,
)
from tests.fixtures.registry import make_version

pytestmark = pytest.mark.django_db

SCRIPT = "<script>alert(1)</script>"
BIDI = "invoice \u202egnp.exe \u200b"


def client_of(name: str, *groups: str, is_superuser: bool = False) -> Client:
    user = User.objects.create_user(name, is_staff=True, is_superuser=is_superuser)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    client = Client()
    client.force_login(user)
    return client


def page(client: Client, run: EvaluationRun, **query: str) -> str:
    answer = client.get(reverse("admin:evaluation_evaluationrun_report", args=[run.pk]), query)
    assert answer.status_code == 200
    return answer.content.decode()


def act(client: Client, run: EvaluationRun, action: str, **data: Any) -> Any:
    return client.post(reverse(f"admin:evaluation_evaluationrun_{action}", args=[run.pk]), data)


def submit_version() -> EvaluationRun:
    version = make_version()
    request = SubmissionRequest(
        adapter_name="tickets", artifact_digest=version.artifact_id, base_model_name="tiny", suite="tickets"
    )
    return submit(request=request, actor=SYSTEM).run


def hostile_run() -> EvaluationRun:
    make_suite()
    run = submit_version()
    rows = candidate_rows(num_wrong=60)
    rows[0] |= {
        "output": SCRIPT,
        "category": SCRIPT,
        "tags": {SCRIPT: SCRIPT},
        "messages": [{"role": SCRIPT, "content": SCRIPT}],
    }
    rows[1] |= {"output": BIDI}
    rows[2] |= {"output": f'{{"urgency": "{SCRIPT}", "{SCRIPT}": 1}}'}
    for _ in range(6):
        run.refresh_from_db()
        job = run.job
        if job is not None and job.kind == "evaluate" and job.state == "queued":
            warning = [{"message": SCRIPT}]
            pair = {
                "train_id": SCRIPT,
                "role": "ood",
                "example_id": SCRIPT,
                "kind": "near",
                "similarity": 0.9,
            }
            leakage = {"status": "checked", "pairs": [pair]}
            finish_evaluation(job, rows, constant_answer_warnings=warning, leakage=leakage)
        else:
            finish_awaited(run)
        advance_all()
    run.refresh_from_db()
    assert run.state == "decided", run.failure
    return run


def test_hostile_text_is_shown_and_does_nothing() -> None:
    run = hostile_run()
    text = page(client_of("anna", is_superuser=True), run)
    assert SCRIPT not in text
    assert "alert(1)" in text
    assert "\u202e" not in text
    assert "\u200b" not in text
    assert 'title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>' in text
    assert "Rejected" in text
    assert "min_score" in text
    # Nothing is loaded from elsewhere and no handler stands in the markup of this page.
    report = text[text.index('<div class="report">') :]
    assert "http" not in report.split("<svg")[0]
    assert " onclick=" not in report


def test_filters() -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=7)
    client = client_of("anna", is_superuser=True)

    def ids(**query: str) -> tuple[int, str]:
        answer = client.get(reverse("admin:evaluation_evaluationrun_examples", args=[run.pk]), query)
        text = answer.content.decode()
        assert "<html" not in text
        return text.count('<article class="example"'), text

    assert ids(role="ood", outcome="failed")[0] == 7
    assert ids(q="Ticket 42 of holdout")[0] == 1
    assert ids(dimension="chat", outcome="failed")[0] == 0
    # Ten a page; a page or filter that does not exist is the nearest, or none.
    assert ids(role="canary", page="999")[0] == 10
    assert ids(role="nonsense", page="x")[0] == 10
    count, text = ids(role="canary")
    assert count == 10
    for label in ("Reference", "Base", "Adapter", "Merged"):
        assert text.count(f"<span>{label}</span>") == 10


def test_examples_of_a_rule() -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=60)
    decision = Decision.objects.get(run=run)
    (rule,) = (rule for rule in decision.rules if rule["rule"] == "min_score")
    text = page(client_of("anna", is_superuser=True), run, rule="min_score")
    assert "Only the examples that decide min_score" in text
    assert f"of {len(rule['example_ids'])}</span>" in text


def test_status_while_a_job_waits() -> None:
    make_suite()
    run = submit_version()
    client = client_of("anna", is_superuser=True)
    answer = client.get(reverse("admin:evaluation_evaluationrun_status", args=[run.pk])).json()
    assert (answer["state"], answer["is_final"], answer["job"]["kind"]) == ("submitted", False, "check")
    assert "data-live-url" in page(client, run)


def test_findings_of_an_invalid_adapter() -> None:
    make_suite()
    run = submit_version()
    assert run.job is not None
    finding = {"code": "rank", "severity": "error", "message": SCRIPT, "where": SCRIPT, "remedy": None}
    finish_check(run.job, findings=[finding])
    advance_all()
    text = page(client_of("anna", is_superuser=True), run)
    assert "Invalid" in text
    assert SCRIPT not in text
    assert "&lt;script&gt;alert(1)" in text


def test_baseline_page() -> None:
    run = make_decided_run(make_version(), make_suite())
    assert run.baseline is not None
    assert "Baseline tiny" in page(client_of("anna", is_superuser=True), run.baseline)


def test_promote_and_roll_back() -> None:
    create_channel(name="staging", form="merged", actor=SYSTEM)
    suite = make_suite()
    runs = [make_decided_run(make_version(), suite) for _ in range(2)]
    client = client_of("pat", "promoters")
    assert "Promote to staging" in page(client, runs[0])
    for revision, run in enumerate(runs):
        act(client, run, "promote", channel="staging", revision=revision, reason="It passed.")
    channel = Channel.objects.get(name="staging")
    assert channel.current is not None
    assert (channel.revision, channel.current.version) == (2, runs[1].version)
    assert "Roll staging back" in page(client, runs[1])
    answer = act(client, runs[1], "rollback", channel="staging", revision=1, reason="Seen too late.")
    assert answer.status_code == 302
    assert Channel.objects.get(name="staging").revision == 2
    act(client, runs[1], "rollback", channel="staging", revision=2, reason="Customers complain.")
    channel = Channel.objects.get(name="staging")
    assert channel.current is not None
    assert channel.current.version == runs[0].version


def test_an_override_on_the_page() -> None:
    create_channel(name="staging", form="merged", actor=SYSTEM)
    run = make_decided_run(make_version(), make_suite(), num_wrong=60)
    anna, ben = client_of("anna", "promoters"), client_of("ben", "promoters")
    assert "Promote to staging" not in page(anna, run)
    act(anna, run, "override", reason="The customer accepts it.")
    assert "A second person has to confirm it." in page(anna, run)
    act(anna, run, "confirm_override")
    assert Override.objects.get().confirmed_at is None
    act(ben, run, "confirm_override")
    assert "Rejected · overridden" in page(ben, run)
    act(ben, run, "promote", channel="staging", revision=0, reason="Agreed.", override="on")
    channel = Channel.objects.get(name="staging")
    assert channel.current is not None
    assert channel.current.override_reason.startswith("The customer accepts it.")


def test_rights() -> None:
    create_channel(name="staging", form="merged", actor=SYSTEM)
    run = make_decided_run(make_version(), make_suite())
    reviewer = client_of("rita", "reviewers")
    assert "Promote to staging" not in page(reviewer, run)
    act(reviewer, run, "promote", channel="staging", revision=0, reason="please")
    act(reviewer, run, "cancel")
    assert Channel.objects.get(name="staging").current is None
    stranger = Client()
    stranger.force_login(User.objects.create_user("sam"))
    url = reverse("admin:evaluation_evaluationrun_report", args=[run.pk])
    for client in (stranger, Client()):
        assert client.get(url).status_code == 302
        assert act(client, run, "promote").status_code == 302


def test_changes_need_post_and_a_csrf_token() -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=60)
    user = User.objects.create_superuser("anna")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    url = reverse("admin:evaluation_evaluationrun_override", args=[run.pk])
    assert client.get(url).status_code == 405
    assert client.post(url, {"reason": "The customer accepts it."}).status_code == 403
    assert not Override.objects.exists()


def test_decide_again_and_form_faults_are_told() -> None:
    run = make_decided_run(make_version(), make_suite())
    client = client_of("anna", is_superuser=True)
    act(client, run, "recompute")
    assert "the same decision again" in page(client, run)
    act(client, run, "promote", channel="", revision="x")
    assert "The form has faults" in page(client, run)


def test_cancel_and_retry() -> None:
    make_suite()
    run = submit_version()
    client = client_of("anna", is_superuser=True)
    act(client, run, "cancel")
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert "Try again" in page(client, run)
    act(client, run, "retry")
    run.refresh_from_db()
    assert run.state == "running"


def test_every_admin_page_of_the_app_opens() -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=60)
    user = User.objects.create_superuser("anna")
    request_override(decision=run.decision, reason="The customer accepts it.", actor=actor_of_user(user))
    client = Client()
    client.force_login(user)
    for model in (
        "suite",
        "suiteversion",
        "policy",
        "decision",
        "override",
        "evaluationrun",
        "exampleresult",
    ):
        listing = client.get(reverse(f"admin:evaluation_{model}_changelist"), {"q": "tickets"})
        assert listing.status_code == 200, model
        row = listing.context["cl"].model.objects.first()
        shown = client.get(reverse(f"admin:evaluation_{model}_change", args=[row.pk]))
        assert shown.status_code == 200, model
        assert client.get(reverse(f"admin:evaluation_{model}_add")).status_code == 403
        assert client.post(reverse(f"admin:evaluation_{model}_delete", args=[row.pk])).status_code == 403
