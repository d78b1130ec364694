import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from evaluation.engine.gate.decision import CHECKS, Decision, decide
from evaluation.engine.gate.evidence import Evidence, Report
from evaluation.engine.gate.outcome import Outcome
from evaluation.engine.gate.policy import DEFAULT_POLICY, RULE_SETTINGS, load_policy
from tests.evaluation.engine.gate.samples import fail_first, sample_evidence


def outcomes(decision: Decision) -> dict[str, Outcome]:
    return {finding.name: finding.outcome for finding in decision.rules}


def test_sound_evidence_passes_every_rule_of_the_default_policy() -> None:
    decision = decide(DEFAULT_POLICY, sample_evidence())
    assert outcomes(decision) == {name: "passed" for name in RULE_SETTINGS} | {"blind_review": "skipped"}
    assert decision.verdict == "passed"
    assert decision.summary.startswith("Passed: all 9 rules")


def test_every_rule_has_a_check() -> None:
    assert CHECKS.keys() == RULE_SETTINGS.keys()


def test_no_evidence_is_inconclusive() -> None:
    decision = decide(DEFAULT_POLICY, Evidence())
    assert decision.verdict == "inconclusive"
    assert set(outcomes(decision).values()) == {"inconclusive", "skipped"}


def test_failed_outweighs_inconclusive() -> None:
    evidence = sample_evidence(
        lambda rows: fail_first(rows, "regression", 20, score=0.0),
        leakage={"status": "unknown", "pairs": []},
    )
    decision = decide(DEFAULT_POLICY, evidence)
    assert decision.verdict == "rejected"
    assert outcomes(decision)["leakage"] == "inconclusive"


def test_the_decision_is_the_same_every_time() -> None:
    evidence = sample_evidence(lambda rows: fail_first(rows, "holdout", 7, score=0.5))
    assert decide(DEFAULT_POLICY, evidence).to_json() == decide(DEFAULT_POLICY, evidence).to_json()


def test_the_summary_gives_the_remedies_of_a_drop_in_order() -> None:
    evidence = sample_evidence(lambda rows: fail_first(rows, "regression", 20, score=0.0))
    summary = decide(DEFAULT_POLICY, evidence).summary
    # MISSION F8.
    positions = [
        summary.index(words) for words in ("general instruction data", "learning rate", "last two thirds")
    ]
    assert positions == sorted(positions)


def test_the_json_form_has_the_keys_of_the_contract() -> None:
    document = decide(DEFAULT_POLICY, sample_evidence()).to_json()
    assert document.keys() == {"verdict", "rules", "summary"}
    common = {
        "outcome",
        "observed",
        "interval",
        "interval_method",
        "threshold",
        "num_examples",
        "explanation",
        "example_ids",
        "parts",
    }
    for rule in document["rules"]:
        assert common | {"rule"} <= rule.keys()
        for part in rule["parts"]:
            assert common | {"name"} <= part.keys()


def test_under_bound_a_straddling_interval_is_inconclusive() -> None:
    # 82 of 100 right: the value clears 0.8, its interval does not.
    evidence = sample_evidence(lambda rows: fail_first(rows, "holdout", 18, score=0.0, passed=False))
    for confidence, outcome in (("point", "passed"), ("bound", "inconclusive")):
        policy = load_policy({"name": "p", "version": 1, "rules": {"min_score": {"confidence": confidence}}})
        assert outcomes(decide(policy, evidence))["min_score"] == outcome


# What only informs: the gate does not read it, so it may be missing.
INFORMATIVE = {
    "schema_version",
    "subject",
    "num_agree",
    "num_near_tie",
    "noise_floor_diverged",
    "diverged",
    "exact_match_rate",
    "lenient_parse_rate",
    "repetition_rate",
    "preamble_rate",
    "num_refused",
    "num_scored",
    "fields",
    "open_generation",
}


def leaves(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    else:
        yield path


def needed_leaves(side: str) -> list[tuple[str, ...]]:
    metrics = getattr(sample_evidence(), side).metrics
    return [path for path in leaves(metrics) if is_needed(side, path)]


def is_needed(side: str, path: tuple[str, ...]) -> bool:
    if path == ("canary_parity", "num_refused"):
        return True
    if path[-1] in INFORMATIVE:
        return False
    if path[:2] == ("sets", "canary"):
        return side == "candidate" and path[-1] == "num_examples"
    if path[-1] == "verified_fraction":
        return side == "candidate" and "dimensions" not in path
    if side == "candidate":
        return True
    # Leakage, parity, OOD scores and behaviour on task sets are judged on the candidate alone; the total of
    # regression examples only ties the candidate's dimensions together.
    behaviour_of_tasks = path[1:2] in (("holdout",), ("ood",)) and "behaviour" in path
    only_candidates = (("sets", "ood", "score"), ("sets", "regression", "num_examples"))
    return not (path[0] in ("leakage", "canary_parity") or path in only_candidates or behaviour_of_tasks)


def spoiled(report: Report, path: tuple[str, ...], *, remove: bool) -> Report:
    """Return the report with one leaf of its metrics removed, or replaced by NaN."""
    metrics = copy.deepcopy(dict(report.metrics or {}))
    node: Any = metrics
    for key in path[:-1]:
        node = node[key]
    if remove:
        del node[path[-1]]
    else:
        node[path[-1]] = float("nan")
    return Report(metrics=metrics, rows=report.rows)


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("side", ["candidate", "baseline"])
def test_a_missing_number_is_never_a_pass(side: str, remove: bool) -> None:
    sound = sample_evidence()
    paths = needed_leaves(side)
    assert len(paths) > 10
    for path in paths:
        changed = spoiled(getattr(sound, side), path, remove=remove)
        evidence = Evidence(
            candidate=changed if side == "candidate" else sound.candidate,
            baseline=changed if side == "baseline" else sound.baseline,
            min_score=sound.min_score,
        )
        assert decide(DEFAULT_POLICY, evidence).verdict != "passed", path


# Canaries of the baseline are not among them: `num_differ_from_base`, made from all of them, stands in the
# candidate's metrics.
ROWS_THAT_COUNT = [
    *(("candidate", role) for role in ("holdout", "ood", "regression", "canary")),
    *(("baseline", role) for role in ("holdout", "ood", "regression")),
]


@pytest.mark.parametrize(("side", "role"), ROWS_THAT_COUNT)
def test_a_missing_row_is_never_a_pass(side: str, role: str) -> None:
    sound = sample_evidence()
    report: Report = getattr(sound, side)
    first = next(number for number, row in enumerate(report.rows) if row["role"] == role)
    changed = Report(metrics=report.metrics, rows=[*report.rows[:first], *report.rows[first + 1 :]])
    evidence = Evidence(
        candidate=changed if side == "candidate" else sound.candidate,
        baseline=changed if side == "baseline" else sound.baseline,
        min_score=sound.min_score,
    )
    assert decide(DEFAULT_POLICY, evidence).verdict == "inconclusive"


def test_missing_parts_of_the_evidence_are_never_a_pass() -> None:
    sound = sample_evidence()
    for evidence in (
        Evidence(candidate=sound.candidate, baseline=sound.baseline),
        Evidence(candidate=sound.candidate, min_score=0.8),
        Evidence(baseline=sound.baseline, min_score=0.8),
    ):
        assert decide(DEFAULT_POLICY, evidence).verdict == "inconclusive"
