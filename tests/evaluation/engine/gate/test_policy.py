from typing import Any

import pytest

from evaluation.engine.errors import PolicyError
from evaluation.engine.gate.policy import (
    DEFAULT_POLICY,
    POLICY_SCHEMA,
    RULE_SETTINGS,
    OodRatioRule,
    load_policy,
)


def test_the_default_policy_is_that_of_the_design() -> None:
    # DESIGN section 5.
    assert DEFAULT_POLICY.to_json()["rules"] == {
        "ood_ratio": {"min_ratio": 0.85, "confidence": "point"},
        "regression_drop": {"max_drop": 0.05, "confidence": "point"},
        "json_parse_rate": {
            "min_strict_parse_rate": 0.98,
            "min_schema_valid_rate": 0.95,
            "confidence": "point",
        },
        "beats_baseline": {"min_margin": 0.0, "confidence": "point"},
        "min_score": {"confidence": "point"},
        "canary_parity": {"max_diverged": 0, "min_differ_from_base": 1},
        "behaviour": {
            "max_never_stops_rate": 0.01,
            "max_template_residue_rate": 0.01,
            "max_open_regression_increase": 0.05,
            "confidence": "point",
        },
        "leakage": {"max_pairs": 0},
        "evidence": {"min_examples": 100, "min_canaries": 50, "min_verified_fraction": 1.0},
    }
    assert (DEFAULT_POLICY.name, DEFAULT_POLICY.version) == ("default", 1)


def test_a_policy_survives_its_own_document() -> None:
    loaded = load_policy(DEFAULT_POLICY.to_json())
    assert loaded == DEFAULT_POLICY
    assert loaded.digest == DEFAULT_POLICY.digest


def test_the_schema_knows_every_rule_and_every_setting() -> None:
    properties = POLICY_SCHEMA["properties"]["rules"]["properties"]
    assert properties.keys() == RULE_SETTINGS.keys()
    full = {"name": "all", "version": 1, "rules": {name: {} for name in RULE_SETTINGS}}
    for name, settings in load_policy(full).to_json()["rules"].items():
        assert settings.keys() == properties[name]["properties"].keys()


def test_settings_that_are_left_out_take_the_defaults() -> None:
    policy = load_policy({"name": "mine", "version": 2, "rules": {"ood_ratio": {"confidence": "bound"}}})
    assert policy.rules == {"ood_ratio": OodRatioRule(min_ratio=0.85, confidence="bound")}


def test_all_faults_come_at_once() -> None:
    document = {"name": "Bad Name", "version": 0, "rules": {"ood_ratio": {"min_ratio": 0}, "bleu": {}}}
    with pytest.raises(PolicyError) as error:
        load_policy(document)
    assert len(error.value.faults) == 4
    assert error.value.code == "policy-invalid"


@pytest.mark.parametrize("document", [None, [], {}, {"name": "a", "version": 1, "rules": {}}])
def test_a_policy_without_rules_is_refused(document: Any) -> None:
    with pytest.raises(PolicyError):
        load_policy(document)
