"""The evaluation app's API as a CI job uses it, over HTTP with a token."""

import uuid
from typing import Any

import pytest

from evaluation.models import EvaluationRun
from evaluation.services.pipeline import advance_all
from registry.services.actors import SYSTEM
from registry.services.channels import create_channel
from tests.fixtures.evaluation import (
    break_job,
    finish_awaited,
    make_decided_run,
    make_suite,
    suite_definition,
)
from tests.fixtures.registry import (
    Caller,
    assert_problem,
    make_base_model,
    make_caller,
    make_version,
    upload_files,
)

pytestmark = pytest.mark.django_db

API = "/api/v1"
ADAPTER_FILES = {"adapter_model.safetensors": b"weights", "adapter_config.json": b"{}"}


def post(caller: Caller, path: str, body: Any = None, **headers: str) -> Any:
    return caller.client.post(f"{API}/{path}", body, format="json", headers=headers)


def get(caller: Caller, path: str, **query: Any) -> Any:
    return caller.client.get(f"{API}/{path}", query)


def submit(caller: Caller, **changes: Any) -> Any:
    digest = upload_files(caller.client, "adapter", ADAPTER_FILES)
    body = {"adapter": "tickets", "artifact": digest, "base_model": "tiny", "suite": "tickets"} | changes
    return post(caller, "submissions", body)


def finish(submission_id: str, **options: Any) -> None:
    run = EvaluationRun.objects.get(pk=submission_id)
    for _ in range(6):
        finish_awaited(run, **options)
        advance_all()


def test_submit_wait_report_promote() -> None:
    make_suite()
    make_base_model()
    create_channel(name="staging", form="merged", actor=SYSTEM)
    caller = make_caller("read", "submit", "promote")

    created = submit(caller, notes="build 17")
    assert created.status_code == 201, created.content
    body = created.json()
    assert (body["adapter"], body["version"], body["state"], body["is_final"]) == (
        "tickets",
        1,
        "submitted",
        False,
    )
    assert (body["suite"], body["policy"], body["verdict"]) == ("tickets@1", "default@1", None)
    assert body["current_job"]["kind"] == "check"
    assert body["decision"] is body["metrics"] is body["baseline_metrics"] is None
    assert body["links"]["report"].endswith(f"/admin/evaluation/evaluationrun/{body['id']}/report/")
    assert submit(caller).status_code == 200

    finish(body["id"])
    done = get(caller, f"submissions/{body['id']}").json()
    assert (done["state"], done["is_final"], done["verdict"]) == ("passed", True, "passed")
    assert done["current_job"] is None
    assert done["metrics"]["holdout"]["score"] == 1.0
    assert done["baseline_metrics"]["holdout"]["score"] == 0.0
    rules = {rule["rule"]: rule for rule in done["decision"]["rules"]}
    assert rules["min_score"]["threshold"] == 0.8
    assert (
        get(caller, "submissions", state="passed", adapter="tickets").json()["results"][0]["id"] == body["id"]
    )
    assert get(caller, "submissions", state="failed").json()["results"] == []

    channel = caller.client.get(f"{API}/channels/staging")
    promotion = {"adapter": "tickets", "version": 1, "reason": "build 17"}
    assert_problem(post(caller, "channels/staging/promote", promotion), 428, "precondition-required")
    changed = post(caller, "channels/staging/promote", promotion, **{"If-Match": channel["ETag"]})
    assert changed.status_code == 200, changed.content
    assert changed.json()["current"]["version"] == 1
    again = post(caller, "channels/staging/promote", promotion, **{"If-Match": channel["ETag"]})
    assert_problem(again, 412, "channel-changed")


def test_a_rejected_adapter() -> None:
    make_suite()
    make_base_model()
    create_channel(name="staging", form="merged", actor=SYSTEM)
    caller = make_caller("read", "submit", "promote")
    submission = submit(caller).json()
    finish(submission["id"], num_wrong=60)
    assert get(caller, f"submissions/{submission['id']}").json()["state"] == "rejected"
    promotion = {"adapter": "tickets", "version": 1, "reason": "please"}
    refused = post(caller, "channels/staging/promote", promotion, **{"If-Match": '"r0"'})
    problem = assert_problem(refused, 409, "version-not-passed")
    assert "min_score" in [fault["where"] for fault in problem["errors"]]


def test_examples_are_filtered_and_paged() -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=7)
    caller = make_caller("read")
    path = f"submissions/{run.pk}/examples"
    failed = get(caller, path, role="ood", passed="false").json()["results"]
    assert [row["example_id"] for row in failed] == [f"ood-{index}" for index in range(7)]
    assert failed[0]["fields"]["urgency"]["correct"] is False
    assert {row["form"] for row in get(caller, path, form="adapter").json()["results"]} == {"adapter"}
    assert {row["dimension"] for row in get(caller, path, dimension="chat").json()["results"]} == {"chat"}
    seen, url = 0, f"{API}/{path}?page_size=150"
    while url:
        page = caller.client.get(url).json()
        seen, url = seen + len(page["results"]), page["next"]
    # 100 holdout + 100 OOD + 100 regression + 2 x 50 canaries.
    assert seen == 400
    assert_problem(get(caller, path, role="train"), 400, "query-invalid")


def test_faults_have_their_places() -> None:
    caller = make_caller("submit")
    body = {"adapter": "tickets", "artifact": "nonsense", "base_model": "tiny", "suit": "tickets"}
    problem = assert_problem(post(caller, "submissions", body), 422, "validation-failed")
    assert {fault["where"] for fault in problem["errors"]} == {"/artifact", "/suite", "/suit"}
    body = {"adapter": "A B", "artifact": "0" * 64, "base_model": "tiny", "suite": "x y"}
    problem = assert_problem(post(caller, "submissions", body), 422, "submission-invalid")
    assert [fault["where"] for fault in problem["errors"]] == [
        "/adapter",
        "/artifact",
        "/base_model",
        "/suite",
    ]


def test_cancel_and_retry() -> None:
    make_suite()
    make_base_model()
    caller = make_caller("submit")
    submission = submit(caller).json()
    path = f"submissions/{submission['id']}"
    assert_problem(post(caller, f"{path}/retry"), 409, "submission-not-retryable")
    assert post(caller, f"{path}/cancel").json()["state"] == "cancelled"
    assert_problem(post(caller, f"{path}/cancel"), 409, "submission-final")
    assert post(caller, f"{path}/retry").json()["state"] == "submitted"


def test_a_failure_is_told() -> None:
    make_suite()
    make_base_model()
    caller = make_caller("submit")
    submission = submit(caller).json()
    job = EvaluationRun.objects.get(pk=submission["id"]).job
    assert job is not None
    break_job(job, failure_class="infrastructure", code="out-of-memory", message="No memory left.")
    advance_all()
    body = get(caller, f"submissions/{submission['id']}").json()
    assert (body["state"], body["failure"]["code"]) == ("failed", "out-of-memory")


def test_an_idempotency_key_makes_one_submission() -> None:
    make_suite()
    make_base_model()
    caller = make_caller("submit")
    digest = upload_files(caller.client, "adapter", ADAPTER_FILES)
    body = {"adapter": "tickets", "artifact": digest, "base_model": "tiny", "suite": "tickets"}
    answers = [post(caller, "submissions", body, **{"Idempotency-Key": "build-17"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json()["id"] == answers[1].json()["id"]


def test_a_token_for_one_adapter_sees_no_other() -> None:
    run = make_decided_run(make_version(), make_suite())
    make_version("contracts")
    caller = make_caller("read", "submit", adapters=["contracts"])
    assert get(caller, "submissions").json()["results"] == []
    assert_problem(get(caller, f"submissions/{run.pk}"), 403, "adapter-out-of-scope")
    assert_problem(get(caller, f"submissions/{run.pk}/examples"), 403, "adapter-out-of-scope")


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("suites", "submit"),
        ("policies", "evaluate"),
        ("baselines", "submit"),
        ("submissions", "read"),
        ("overrides", "review"),
        ("channels/staging/promote", "review"),
    ],
)
def test_scopes(path: str, scope: str) -> None:
    assert_problem(post(make_caller(scope), path, {}), 403, "scope-missing")


def test_unknown_ids() -> None:
    caller, unknown = make_caller("admin"), uuid.uuid4()
    assert_problem(get(caller, f"submissions/{unknown}"), 404, "submission-not-found")
    assert_problem(get(caller, f"baselines/{unknown}"), 404, "baseline-not-found")
    assert_problem(get(caller, f"decisions/{unknown}"), 404, "decision-not-found")
    assert_problem(get(caller, "overrides/7"), 404, "override-not-found")
    assert_problem(get(caller, "suites/tickets"), 404, "suite-not-found")
    assert_problem(get(caller, "policies/default", number=9), 404, "policy-version-not-found")


def test_suites_and_baselines() -> None:
    suite = make_suite(num=3)
    make_base_model()
    caller = make_caller("read", "evaluate")
    shown = get(caller, "suites/tickets").json()
    assert (shown["reference"], shown["digest"]) == ("tickets@1", suite.digest)
    assert shown["datasets"]["ood"] == "tickets-ood@1"
    changed = {"definition": suite_definition(min_score=0.7), "datasets": shown["datasets"]}
    assert [post(caller, "suites", changed).status_code for _ in range(2)] == [201, 200]
    assert get(caller, "suites/tickets").json()["number"] == 2
    assert get(caller, "suites/tickets", number=1).json()["number"] == 1
    assert len(get(caller, "suites").json()["results"]) == 2
    bad = post(caller, "suites", {"definition": {}, "datasets": {}})
    assert_problem(bad, 422, "suite-invalid")

    asked = {"suite": "tickets@1", "base_model": "tiny"}
    answers = [post(caller, "baselines", asked) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    body = answers[0].json()
    assert (body["subject"], body["state"], body["is_final"]) == ("baseline", "running", False)
    assert body["current_job"]["kind"] == "evaluate"
    run = EvaluationRun.objects.get(pk=body["id"])
    finish_awaited(run)
    advance_all()
    done = get(caller, f"baselines/{body['id']}").json()
    assert (done["state"], done["is_final"]) == ("succeeded", True)
    assert done["artifact"] is not None
    problem = assert_problem(
        post(caller, "baselines", {"suite": "x", "base_model": "y"}), 422, "baseline-invalid"
    )
    assert len(problem["errors"]) == 2


def test_policies() -> None:
    caller = make_caller("admin")
    document = {"name": "lax", "rules": {"leakage": {}}}
    answers = [post(caller, "policies", {"definition": document}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert get(caller, "policies/lax").json()["reference"] == "lax@1"
    assert {it["reference"] for it in get(caller, "policies").json()["results"]} == {"default@1", "lax@1"}
    taken = post(caller, "policies", {"definition": {"name": "lax", "version": 1, "rules": {"evidence": {}}}})
    assert_problem(taken, 409, "policy-version-taken")


def test_decisions_and_overrides() -> None:
    run = make_decided_run(make_version(), make_suite(), num_wrong=60)
    anna, ben = make_caller("read", "promote"), make_caller("read", "promote")
    decision = get(anna, f"decisions/{run.decision.pk}").json()
    assert decision["verdict"] == "rejected"
    again = post(anna, f"decisions/{decision['id']}/recompute").json()
    assert again == {"decision": decision["id"], "is_equal": True, "verdict": "rejected", "differences": []}
    asked = {"decision": decision["id"], "reason": "The customer accepts it."}
    created = post(anna, "overrides", asked)
    assert (created.status_code, created.json()["is_confirmed"]) == (201, False)
    path = f"overrides/{created.json()['id']}"
    assert_problem(post(anna, f"{path}/confirm"), 409, "second-person-needed")
    assert post(ben, f"{path}/confirm").json()["is_confirmed"] is True
    assert get(anna, path).json()["confirmed_by"] == ben.user.username
    assert len(get(anna, "overrides").json()["results"]) == 1


def test_the_schema_can_be_made_without_a_warning() -> None:
    answer = make_caller("read").client.get(f"{API}/schema", headers={"Accept": "application/json"})
    assert answer.status_code == 200
    paths = answer.data["paths"]
    for path in ("suites", "submissions/{run_id}/examples", "channels/{name}/promote", "training-runs"):
        assert f"{API}/{path}" in paths
