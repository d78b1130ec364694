"""Registering policies, and the default one that every database has."""

from dataclasses import replace
from typing import Any

import pytest

from evaluation.engine.gate.policy import DEFAULT_POLICY, OodRatioRule
from evaluation.errors import EvaluationConflict, RegistrationInvalid
from evaluation.models import Policy
from evaluation.services import policies
from evaluation.services.policies import ensure_default_policy, register_policy
from registry.errors import ScopeError
from registry.services.actors import SYSTEM
from tests.fixtures.registry import make_caller

pytestmark = pytest.mark.django_db


def definition(**changes: Any) -> dict[str, Any]:
    return {"name": "strict", "version": 1, "rules": {"ood_ratio": {"min_ratio": 0.95}}} | changes


def test_migrate_made_the_default_policy() -> None:
    policy = Policy.objects.get(name="default")
    assert (policy.number, policy.digest) == (1, DEFAULT_POLICY.digest)
    assert ensure_default_policy() == policy


def test_new_rules_in_the_code_become_the_next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {**DEFAULT_POLICY.rules, "ood_ratio": OodRatioRule(min_ratio=0.9)}
    monkeypatch.setattr(policies, "DEFAULT_POLICY", replace(DEFAULT_POLICY, rules=rules))
    assert str(ensure_default_policy()) == "default@2"
    assert str(ensure_default_policy()) == "default@2"


def test_every_threshold_is_spelled_out() -> None:
    policy = register_policy(definition=definition(), actor=SYSTEM).policy
    assert policy.definition["rules"] == {"ood_ratio": {"min_ratio": 0.95, "confidence": "point"}}


def test_same_rules_again() -> None:
    first = register_policy(definition=definition(), actor=SYSTEM)
    again = register_policy(definition=definition(), actor=SYSTEM)
    assert (first.is_new, again.is_new, again.policy) == (True, False, first.policy)


def test_a_version_never_changes() -> None:
    register_policy(definition=definition(), actor=SYSTEM)
    with pytest.raises(EvaluationConflict) as caught:
        register_policy(definition=definition(rules={"leakage": {}}), actor=SYSTEM)
    assert caught.value.code == "policy-version-taken"


def test_a_version_that_is_left_out_is_the_next() -> None:
    first, second = definition(), definition(rules={"leakage": {}})
    del first["version"], second["version"]
    numbers = [register_policy(definition=it, actor=SYSTEM).policy.number for it in (first, first, second)]
    assert numbers == [1, 1, 2]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version": 3}, ["policy-version-skips"]),
        ({"rules": {"ood_ratio": {"min_ratio": -1}}, "name": "Bad"}, ["policy-schema", "policy-schema"]),
        ({"rules": {"oood_ratio": {}}}, ["policy-schema"]),
        ({"description": "\x00"}, ["unstorable-text"]),
    ],
)
def test_faulty_policies(changes: dict[str, Any], expected: list[str]) -> None:
    with pytest.raises(RegistrationInvalid) as caught:
        register_policy(definition=definition(**changes), actor=SYSTEM)
    assert [fault.code for fault in caught.value.faults] == expected


def test_no_object() -> None:
    with pytest.raises(RegistrationInvalid):
        register_policy(definition=[1], actor=SYSTEM)


def test_rights() -> None:
    with pytest.raises(ScopeError):
        register_policy(definition=definition(), actor=make_caller("evaluate", "promote").actor)
