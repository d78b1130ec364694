from typing import Any

import pytest

from evaluation.engine.gate.evidence import Evidence
from evaluation.engine.gate.outcome import Outcome
from evaluation.engine.gate.policy import BlindReviewRule, CanaryParityRule, EvidenceRule, LeakageRule
from evaluation.engine.gate.rules.trust import (
    check_blind_review,
    check_canary_parity,
    check_evidence,
    check_leakage,
)
from tests.evaluation.engine.gate.samples import fail_first, parity, sample_evidence


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "passed"),
        ({"num_diverged": 1, "diverged": ["canary-3"]}, "failed"),
        ({"num_near_tie": 50, "num_agree": 0}, "passed"),
        ({"num_differ_from_base": 1}, "passed"),
        ({"num_differ_from_base": 0}, "failed"),
        ({"num_differ_from_base": None}, "inconclusive"),
        ({"num_compared": 49}, "inconclusive"),
        ({"num_compared": 49, "num_refused": 1}, "passed"),
        ({"num_compared": 0, "num_refused": 50}, "inconclusive"),
        ({"num_diverged": None}, "inconclusive"),
    ],
)
def test_canary_parity(changes: dict[str, Any], outcome: Outcome) -> None:
    finding = check_canary_parity(CanaryParityRule(), sample_evidence(canary_parity=parity(**changes)))
    assert finding.outcome == outcome
    assert finding.example_ids == tuple(changes.get("diverged", ()))


def test_forms_that_were_not_compared_are_inconclusive() -> None:
    assert (
        check_canary_parity(CanaryParityRule(), sample_evidence(canary_parity=None)).outcome == "inconclusive"
    )


PAIR = {"train_id": "a", "role": "holdout", "example_id": "h1", "kind": "near", "similarity": 0.9}


@pytest.mark.parametrize(
    ("leakage", "outcome"),
    [
        ({"status": "checked", "pairs": []}, "passed"),
        ({"status": "checked", "pairs": [PAIR]}, "failed"),
        ({"status": "unknown", "pairs": []}, "inconclusive"),
        ({"status": "checked"}, "inconclusive"),
        (None, "inconclusive"),
        ({}, "inconclusive"),
    ],
)
def test_leakage(leakage: Any, outcome: Outcome) -> None:
    assert check_leakage(LeakageRule(), sample_evidence(leakage=leakage)).outcome == outcome


def test_leakage_names_the_examples() -> None:
    finding = check_leakage(
        LeakageRule(), sample_evidence(leakage={"status": "checked", "pairs": [PAIR, PAIR]})
    )
    assert finding.example_ids == ("h1",)


@pytest.mark.parametrize(
    ("role", "least"), [("holdout", 100), ("ood", 100), ("regression", 100), ("canary", 50)]
)
def test_too_few_examples_are_inconclusive(role: str, least: int) -> None:
    def drop_one(rows: list[dict[str, Any]]) -> None:
        rows.remove(next(row for row in rows if row["role"] == role))

    finding = check_evidence(EvidenceRule(), sample_evidence(drop_one, drop_one))
    assert finding.outcome == "inconclusive"
    assert f"at least {least}" in finding.explanation


def test_an_unverified_reference_is_inconclusive_and_named() -> None:
    evidence = sample_evidence(lambda rows: fail_first(rows, "ood", 1, details={"verified": False}))
    finding = check_evidence(EvidenceRule(), evidence)
    assert finding.outcome == "inconclusive"
    assert finding.example_ids == ("ood-0",)
    assert check_evidence(EvidenceRule(min_verified_fraction=0.99), evidence).outcome == "passed"


@pytest.mark.parametrize(
    ("review", "outcome"),
    [
        (None, "inconclusive"),
        ({}, "inconclusive"),
        ({"num_outputs": 49, "dimensions": {}}, "inconclusive"),
        ({"num_outputs": 50, "dimensions": {}}, "inconclusive"),
        (
            {"num_outputs": 50, "dimensions": {"accuracy": {"candidate_mean": 4.0, "baseline_mean": 4.0}}},
            "passed",
        ),
        (
            {"num_outputs": 50, "dimensions": {"accuracy": {"candidate_mean": 3.9, "baseline_mean": 4.0}}},
            "failed",
        ),
    ],
)
def test_blind_review(review: Any, outcome: Outcome) -> None:
    settings = BlindReviewRule(dimensions=("accuracy",))
    assert check_blind_review(settings, Evidence(blind_review=review)).outcome == outcome
