"""Registering suites."""

from typing import Any

import pytest

from evaluation.errors import RegistrationInvalid
from evaluation.models import SuiteVersion
from evaluation.services.suites import register_suite
from registry.errors import ScopeError
from registry.services.actors import SYSTEM
from registry.services.datasets import register_dataset_version
from tests.fixtures.evaluation import dataset_line, make_dataset, make_suite, suite_definition
from tests.fixtures.registry import jsonl, make_caller, store_files

pytestmark = pytest.mark.django_db

ROLES = ("holdout", "ood", "regression", "canary")


def datasets() -> dict[str, str]:
    return {role: str(make_dataset(f"tickets-{role}", role, num=3)) for role in ROLES}


def codes(definition: Any, names: dict[str, str]) -> list[str]:
    with pytest.raises(RegistrationInvalid) as caught:
        register_suite(definition=definition, datasets=names, actor=SYSTEM)
    assert caught.value.code == "suite-invalid"
    return [fault.code for fault in caught.value.faults]


def test_same_content_is_the_same_version_and_other_content_the_next() -> None:
    first = make_suite(num=3)
    again = register_suite(definition=suite_definition(), datasets=datasets(), actor=SYSTEM)
    assert (again.version, again.is_new) == (first, False)
    changed = register_suite(definition=suite_definition(min_score=0.9), datasets=datasets(), actor=SYSTEM)
    assert (str(changed.version), changed.is_new) == ("tickets@2", True)
    assert first.digest != changed.version.digest


def test_faults_of_definition_and_roles_come_together() -> None:
    names = datasets()
    definition = suite_definition()
    del definition["min_score"]
    found = codes(definition, {"holdout": names["ood"], "ood": "tickets-odd@1", "train": "x"})
    assert found == [
        "min-score-missing",
        "role-unknown",
        "dataset-role-differs",
        "dataset-version-not-found",
        "role-missing",
        "role-missing",
    ]
    assert not SuiteVersion.objects.exists()


def test_references_must_be_valid_under_the_schema() -> None:
    names = datasets()
    line = dataset_line("holdout", 0)
    line["messages"][-1]["content"] = '{"urgency": 3}'
    artifact = store_files({"data.jsonl": jsonl(line)}, kind="dataset")
    register_dataset_version(
        name="tickets-holdout", role="holdout", artifact_digest=artifact.digest, actor=SYSTEM
    )
    assert codes(suite_definition(), names | {"holdout": "tickets-holdout@2"}) == ["reference-schema-invalid"]


def test_text_that_no_database_takes() -> None:
    assert codes(suite_definition(description="\x00"), datasets()) == ["unstorable-text"]


def test_rights() -> None:
    with pytest.raises(ScopeError):
        register_suite(definition=suite_definition(), datasets={}, actor=make_caller("submit").actor)
