"""What is refused at the entrance, and what the same submission twice gives."""

from typing import Any

import pytest

from evaluation.errors import EvaluationConflict, SubmissionInvalid
from evaluation.models import EvaluationRun
from evaluation.services.submissions import SubmissionRequest, cancel_submission, retry_submission, submit
from registry.errors import ScopeError
from registry.models import AdapterVersion
from registry.services.actors import SYSTEM
from tests.fixtures.evaluation import make_dataset, make_decided_run, make_suite
from tests.fixtures.registry import make_caller, make_version, store_files

pytestmark = pytest.mark.django_db


def request_for(version: AdapterVersion, **changes: Any) -> SubmissionRequest:
    values: dict[str, Any] = {
        "adapter_name": version.adapter.name,
        "artifact_digest": version.artifact_id,
        "base_model_name": version.base_model.name,
        "suite": "tickets",
    } | changes
    return SubmissionRequest(**values)


def test_all_faults_at_once() -> None:
    make_suite()
    holdout = make_dataset("other-holdout", "holdout", num=3)
    merged = store_files({"model.safetensors": b"x"}, kind="merged_model")
    request = SubmissionRequest(
        adapter_name="Bad Name",
        artifact_digest=merged.digest,
        base_model_name="tinny",
        suite="tickts",
        policy="defalt@1",
        training_datasets=[str(holdout), "tickets-trian@1", "no reference"],
    )
    make_version()
    with pytest.raises(SubmissionInvalid) as caught:
        submit(request=request, actor=SYSTEM)
    faults = {fault.where: fault for fault in caught.value.faults}
    assert {where: fault.code for where, fault in faults.items()} == {
        "/adapter": "name-invalid",
        "/artifact": "artifact-kind-differs",
        "/base_model": "base-model-not-found",
        "/suite": "suite-not-found",
        "/policy": "policy-not-found",
        "/training_dataset/0": "dataset-role-differs",
        "/training_dataset/1": "dataset-version-not-found",
        "/training_dataset/2": "reference-invalid",
    }
    assert "'tiny'" in faults["/base_model"].message
    assert "'tickets'" in faults["/suite"].message
    assert "'default'" in faults["/policy"].message
    assert not EvaluationRun.objects.exists()


def test_unknown_artifact_and_version_of_suite() -> None:
    make_suite()
    version = make_version()
    with pytest.raises(SubmissionInvalid) as caught:
        submit(request=request_for(version, artifact_digest="0" * 64, suite="tickets@9"), actor=SYSTEM)
    assert [fault.code for fault in caught.value.faults] == ["artifact-not-found", "suite-version-not-found"]
    assert "tickets@1" in caught.value.faults[1].message


def test_the_same_again_is_the_same_submission() -> None:
    make_suite()
    version = make_version()
    first = submit(request=request_for(version), actor=SYSTEM)
    again = submit(request=request_for(version, suite="tickets@1", policy="default@1"), actor=SYSTEM)
    assert (first.is_new, again.is_new) == (True, False)
    assert first.run.pk == again.run.pk


def test_training_data_cannot_change_afterwards() -> None:
    make_suite()
    make_dataset("tickets-train", "train", num=3)
    version = make_version()
    with pytest.raises(EvaluationConflict) as caught:
        submit(request=request_for(version, training_datasets=["tickets-train@1"]), actor=SYSTEM)
    assert caught.value.code == "training-data-differs"


def test_training_data_go_into_the_evaluation_by_name() -> None:
    make_suite()
    make_dataset("tickets-train", "train", num=3)
    make_version()
    artifact = store_files(
        {"adapter_model.safetensors": b"new", "adapter_config.json": b"{}"}, kind="adapter"
    )
    request = SubmissionRequest(
        adapter_name="tickets",
        artifact_digest=artifact.digest,
        base_model_name="tiny",
        suite="tickets",
        training_datasets=["tickets-train"],
    )
    run = submit(request=request, actor=SYSTEM).run
    assert run.version is not None
    assert [str(item) for item in run.version.training_datasets.all()] == ["tickets-train@1"]


@pytest.mark.parametrize(("scopes", "adapters"), [(("read", "evaluate"), ()), (("submit",), ("contracts",))])
def test_rights(scopes: tuple[str, ...], adapters: tuple[str, ...]) -> None:
    make_suite()
    version = make_version()
    make_version("contracts")
    caller = make_caller(*scopes, adapters=adapters)
    with pytest.raises(ScopeError):
        submit(request=request_for(version), actor=caller.actor)


def test_a_decided_submission_is_neither_cancelled_nor_retried() -> None:
    run = make_decided_run(make_version(), make_suite())
    for change in (cancel_submission, retry_submission):
        with pytest.raises(EvaluationConflict) as caught:
            change(run=run, actor=SYSTEM)
        assert caught.value.fields["state"] == "passed"
