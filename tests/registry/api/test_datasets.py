"""Datasets: checked when registered, numbered, never changed."""

from typing import Any

import pytest

from registry.models import AuditEvent, DatasetVersion
from tests.fixtures.registry import Caller, assert_problem, example, jsonl, make_caller, upload_files

pytestmark = pytest.mark.django_db
DATASETS = "/api/v1/datasets"


@pytest.fixture
def caller() -> Caller:
    return make_caller("submit", "read")


def register(caller: Caller, content: bytes, *, name: str = "tickets", role: str = "holdout") -> Any:
    digest = upload_files(caller.client, "dataset", {"data.jsonl": content})
    return caller.client.post(
        f"{DATASETS}/{name}/versions", {"artifact": digest, "role": role}, format="json"
    )


def test_register_and_read(caller: Caller) -> None:
    lines = [example("a", reference_source="person", tags={"lang": "en"}), example("b", confirmed_by="Ann")]
    answer = register(caller, jsonl(*lines))
    assert answer.status_code == 201, answer.content
    version = answer.json()
    assert version["reference"] == "tickets@1" and version["number"] == 1 and version["role"] == "holdout"
    assert (version["num_examples"], version["num_verified"], version["is_verified"]) == (2, 2, True)
    assert version["card"] == {"tags": {"lang": {"en": 1}}}
    again = register(caller, jsonl(*lines))
    assert again.status_code == 200 and again.json() == version
    second = register(caller, jsonl(example("c"))).json()
    assert second["reference"] == "tickets@2" and second["is_verified"] is False
    document = caller.client.get(f"{DATASETS}/tickets").json()
    assert [item["number"] for item in document["versions"]] == [2, 1]
    assert document["latest"]["number"] == 2 and document["num_versions"] == 2
    listed = caller.client.get(DATASETS, {"role": "holdout"}).json()["results"]
    assert [item["name"] for item in listed] == ["tickets"]
    assert caller.client.get(DATASETS, {"role": "train"}).json()["results"] == []
    assert_problem(caller.client.get(DATASETS, {"role": "x"}), 400, "query-invalid")
    assert AuditEvent.objects.filter(action="dataset_version.create").count() == 2


def test_every_faulty_line_is_named(caller: Caller) -> None:
    content = b"{\n" + jsonl(example("a"), example("a"), {"id": "c"})
    document = assert_problem(register(caller, content), 422, "dataset-invalid")
    places = [(error["code"], error["where"]) for error in document["errors"]]
    assert places == [
        ("not-json", "data.jsonl line 1"),
        ("duplicate-id", "data.jsonl line 3"),
        ("missing-messages", "data.jsonl line 4"),
    ]
    assert document["num_faults"] == 3
    assert DatasetVersion.objects.count() == 0


def test_other_files_are_no_dataset(caller: Caller) -> None:
    digest = upload_files(caller.client, "dataset", {"data.json": b"{}"})
    body = {"artifact": digest, "role": "train"}
    answer = caller.client.post(f"{DATASETS}/tickets/versions", body, format="json")
    assert assert_problem(answer, 422, "dataset-invalid")["errors"][0]["code"] == "dataset-files"


def test_size_limit(caller: Caller, settings: Any) -> None:
    settings.MAX_DATASET_BYTES = 10
    answer = register(caller, jsonl(example()))
    assert assert_problem(answer, 422, "dataset-invalid")["errors"][0]["code"] == "dataset-too-large"


def test_role_is_fixed(caller: Caller) -> None:
    assert (
        caller.client.post(DATASETS, {"name": "tickets", "role": "train"}, format="json").status_code == 201
    )
    assert (
        caller.client.post(DATASETS, {"name": "tickets", "role": "train"}, format="json").status_code == 200
    )
    assert_problem(register(caller, jsonl(example()), role="holdout"), 409, "dataset-role-differs")
    answer = caller.client.post(DATASETS, {"name": "tickets", "role": "ood"}, format="json")
    assert_problem(answer, 409, "dataset-role-differs")


@pytest.mark.parametrize("name", ["Tickets", "a b", "-x", "x" * 97, "%00"])
def test_bad_names(caller: Caller, name: str) -> None:
    assert register(caller, jsonl(example()), name=name).status_code == 422
    assert_problem(caller.client.get(f"{DATASETS}/{name}"), 404, "dataset-not-found")


def test_unknown_artifact(caller: Caller) -> None:
    body = {"artifact": "a" * 64, "role": "train"}
    assert_problem(
        caller.client.post(f"{DATASETS}/tickets/versions", body, format="json"), 404, "artifact-not-found"
    )
