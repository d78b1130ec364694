"""Training runs over HTTP."""

import uuid
from typing import Any

import pytest
from django.utils import timezone

from client.training_models import Comparison as ClientComparison
from client.training_models import TrainingRun as ClientRun
from client.training_models import read_curves
from registry.models import Job
from registry.services.jobs import JobEventRecord, claim_job, record_events
from tests.fixtures.evaluation import make_dataset
from tests.fixtures.registry import assert_problem, make_base_model, make_caller
from tests.fixtures.training_runs import finding, finish, make_run, metric, mini, preflight, report
from training.models import MiniConfiguration, TrainingRun
from training.services.runs import reconcile_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

URL = "/api/v1/training-runs"
BODY: dict[str, Any] = {"name": "lora", "base_model": "tiny", "datasets": ["tickets-train@1"], "config": {}}


@pytest.fixture(autouse=True)
def inputs(store: Any) -> None:
    make_base_model()
    make_dataset("tickets-train", "train", num=3)


def test_create_look_and_cancel() -> None:
    client = make_caller("submit").client
    created = client.post(URL, BODY, format="json")
    assert created.status_code == 201, created.content
    run = created.json()
    assert (run["state"], run["artifact"], run["datasets"], run["holdout"]) == (
        "queued",
        None,
        ["tickets-train@1"],
        None,
    )
    assert run["current_job"]["kind"] == "train"
    assert run["config"]["training"]["num_epochs"] == 2.0

    claim = claim_job(job_id=Job.objects.get().pk, worker="w")
    assert claim is not None
    event = JobEventRecord(at=timezone.now(), type="metric", step=1, values={"loss": 2.5})
    record_events(claim=claim, events=[event])
    reconcile_all()
    assert client.get(run["metrics_url"]).json() == {"results": {"loss": [{"step": 1, "value": 2.5}]}}
    assert client.get(f"{URL}/{run['id']}").json()["state"] == "running"
    assert [it["id"] for it in client.get(URL).json()["results"]] == [run["id"]]
    assert client.post(f"{URL}/{run['id']}/cancel").json()["state"] == "cancelled"
    assert_problem(client.post(f"{URL}/{run['id']}/cancel"), 409, "training-run-final")


def test_faults() -> None:
    client = make_caller("submit").client
    problem = assert_problem(client.post(URL, {"nam": 1}, format="json"), 422, "validation-failed")
    assert {fault["where"] for fault in problem["errors"]} == {"/name", "/base_model", "/datasets", "/nam"}
    bad = BODY | {"config": {"lora": {"r": 0}}}
    problem = assert_problem(client.post(URL, bad, format="json"), 422, "training-run-invalid")
    assert [fault["where"] for fault in problem["errors"]] == ["/config/lora/r"]
    assert_problem(client.get(f"{URL}/{uuid.uuid4()}"), 404, "training-run-not-found")
    assert_problem(make_caller("read").client.post(URL, BODY, format="json"), 403, "scope-missing")


def test_what_a_run_reports() -> None:
    client = make_caller("submit").client
    run = report(make_run(), metric(1, loss=2.0), preflight(), finding(step=1))
    answer = client.get(f"{URL}/{run.pk}").json()
    assert (answer["purpose"], answer["verdict"], answer["parent"]) == ("training", None, None)
    (found,) = answer["findings"]
    assert (found["code"], found["step"], found["severity"]) == ("gradient-clipped-often", 1, "warning")
    assert {"few-rows", "no-held-out-set"} <= {item["code"] for item in answer["lint"]["findings"]}
    # The command line reads the very answers.
    read = ClientRun.from_json(answer)
    assert (read.findings[0].step, read.lint[0].severity, read.purpose) == (1, "warning", "training")
    assert read_curves(client.get(answer["metrics_url"]).json()) == {"loss": [(1, 2.0)]}
    documents = client.get(answer["links"]["documents"]).json()["results"]
    assert documents["preflight"]["overfit"]["last_loss"] == 0.06
    assert_problem(client.get(f"{URL}/{uuid.uuid4()}/documents"), 404, "training-run-not-found")


def test_purposes_and_filters() -> None:
    client = make_caller("submit").client
    mini_run = client.post(URL, BODY | {"purpose": "mini", "note": "a try"}, format="json").json()
    assert (mini_run["purpose"], mini_run["note"]) == ("mini", "a try")
    assert (mini_run["config"]["data"]["max_examples"], mini_run["config"]["training"]["max_steps"]) == (
        200,
        200,
    )
    job = Job.objects.get()
    assert job.config["purpose"] == "mini"
    again = client.post(URL, BODY | {"parent": mini_run["id"]}, format="json").json()
    assert (again["purpose"], again["parent"]) == ("training", mini_run["id"])
    listed = client.get(URL, {"purpose": "mini", "state": "queued"}).json()["results"]
    assert [item["id"] for item in listed] == [mini_run["id"]]
    assert_problem(client.get(URL, {"purpose": "fun"}), 400, "query-invalid")
    finish(report(TrainingRun.objects.get(pk=mini_run["id"]), mini(passed=False)))
    assert client.get(f"{URL}/{mini_run['id']}").json()["verdict"] == "failed"
    unknown = client.post(URL, BODY | {"parent": str(uuid.uuid4())}, format="json")
    assert [item["where"] for item in assert_problem(unknown, 422, "training-run-invalid")["errors"]] == [
        "/parent"
    ]


def test_errors_of_the_rules_come_all_at_once() -> None:
    client = make_caller("submit").client
    bad = BODY | {"config": {"lora": {"use_dora": True}, "training": {"learning_rate": 0.1}}}
    problem = assert_problem(client.post(URL, bad, format="json"), 422, "training-lint-failed")
    places = {fault["where"] for fault in problem["errors"]}
    assert places == {"/config/lora/use_dora", "/config/training/learning_rate"}
    accepted = client.post(URL, bad | {"allow_lint_errors": True}, format="json")
    assert accepted.status_code == 201
    assert accepted.json()["lint"]["is_overridden"] is True


def test_a_stored_configuration_that_no_longer_fits_is_told() -> None:
    MiniConfiguration.objects.create(overlay={"training": {"max_stepz": 1}})
    problem = make_caller("submit").client.post(URL, BODY | {"purpose": "mini"}, format="json")
    errors = assert_problem(problem, 422, "mini-configuration-unfit")["errors"]
    assert [fault["where"] for fault in errors] == ["/mini_configuration/training/max_stepz"]


def test_vary_and_compare() -> None:
    client = make_caller("submit").client
    run = client.post(URL, BODY, format="json").json()
    url = f"{URL}/{run['id']}/variations"
    made = client.post(url, {"remedy": "lower-rate"}, format="json")
    assert made.status_code == 201, made.content
    assert (made.json()["parent"], made.json()["remedy"]) == (run["id"], "lower-rate")
    table = client.get(run["links"]["comparison"]).json()
    assert [item["remedy"] for item in table["runs"]] == ["", "lower-rate"]
    read = ClientComparison.from_json(table)
    assert read.parts["differences"] == (("training.learning_rate", ("0.0002", "0.0001")),)
    assert table["differences"] == [{"name": "training.learning_rate", "values": [2e-4, 1e-4]}]
    problem = client.post(url, {"remedy": "more-general-data"}, format="json")
    assert_problem(problem, 422, "general-data-missing")
    faults = assert_problem(client.post(url, {"remedi": "x"}, format="json"), 422, "validation-failed")[
        "errors"
    ]
    assert {fault["where"] for fault in faults} == {"/remedy", "/remedi"}
    reader = make_caller("read").client
    assert_problem(reader.post(url, {"remedy": "lower-rate"}, format="json"), 403, "scope-missing")
    assert reader.get(run["links"]["comparison"]).status_code == 200
