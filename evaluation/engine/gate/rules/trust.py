"""Rules about whether the numbers may be trusted: canary_parity, leakage, evidence, blind_review."""

from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.engine.gate.evidence import Evidence
from evaluation.engine.gate.outcome import (
    MAX_EXAMPLE_IDS,
    Finding,
    as_percent,
    at_least,
    combine,
    hold_against,
    inconclusive,
)
from evaluation.engine.gate.policy import BlindReviewRule, CanaryParityRule, EvidenceRule, LeakageRule


def check_canary_parity(settings: CanaryParityRule, evidence: Evidence) -> Finding:
    """Merged and adapter agree on all canaries, near ties aside, and the adapter differs from the base
    somewhere.
    """
    name = "canary_parity"
    if evidence.candidate.value("canary_parity") is None:
        return inconclusive(name, "the two forms were not compared", threshold=float(settings.max_diverged))
    parts = [_check_divergence(settings, evidence), _check_effect(settings, evidence)]
    return combine(
        name,
        parts,
        f"{parts[0].explanation}; {parts[1].explanation}",
        observed=parts[0].observed,
        threshold=parts[0].threshold,
        num_examples=parts[0].num_examples,
    )


def check_leakage(settings: LeakageRule, evidence: Evidence) -> Finding:
    """Training data were compared with the evaluation sets, and no pair was found."""
    name, threshold = "leakage", float(settings.max_pairs)
    status = evidence.candidate.value("leakage", "status")
    pairs = evidence.candidate.value("leakage", "pairs")
    if status != "checked" or not isinstance(pairs, list):
        return inconclusive(
            name, "training data were not compared with the evaluation sets", threshold=threshold
        )
    ids = [str(pair.get("example_id")) for pair in pairs if isinstance(pair, Mapping)]
    return Finding(
        name=name,
        outcome="passed" if len(pairs) <= settings.max_pairs else "failed",
        observed=float(len(pairs)),
        threshold=threshold,
        explanation=f"{len(pairs)} evaluation examples also stand in the training data"
        if pairs
        else "no evaluation example stands in the training data",
        example_ids=tuple(dict.fromkeys(ids))[:MAX_EXAMPLE_IDS],
    )


def check_evidence(settings: EvidenceRule, evidence: Evidence) -> Finding:
    """Each set is large enough and its references are verified; where not, nothing can be concluded."""
    parts = []
    for role in ("holdout", "ood", "regression"):
        parts.append(_check_size(role, settings.min_examples, evidence))
        parts.append(_check_verified(role, settings.min_verified_fraction, evidence))
    parts.append(_check_size("canary", settings.min_canaries, evidence))
    weak = [part for part in parts if part.outcome != "passed"]
    explanation = "; ".join(part.explanation for part in weak) or "every set is large enough and verified"
    return combine("evidence", parts, explanation)


def check_blind_review(settings: BlindReviewRule, evidence: Evidence) -> Finding:
    """In the blind review no dimension's mean is below the baseline's; dimensions are never added up (F7)."""
    name = "blind_review"
    if evidence.blind_review is None:
        return inconclusive(name, "the policy demands a blind review and there is none")
    num = evidence.blind_review.get("num_outputs")
    if not isinstance(num, int) or num < settings.min_outputs:
        return inconclusive(name, f"{num} outputs were reviewed, at least {settings.min_outputs} are needed")
    means = evidence.blind_review.get("dimensions")
    parts = [
        _check_review_dimension(dimension, means.get(dimension) if isinstance(means, Mapping) else None, num)
        for dimension in settings.dimensions
    ]
    return combine(name, parts, "; ".join(part.explanation for part in parts), num_examples=num)


def _check_divergence(settings: CanaryParityRule, evidence: Evidence) -> Finding:
    name, threshold = "forms agree", float(settings.max_diverged)
    report = evidence.candidate
    compared = report.count("canary_parity", "num_compared")
    diverged = report.count("canary_parity", "num_diverged")
    refused = report.count("canary_parity", "num_refused")
    num_canaries = report.count("sets", "canary", "num_examples")
    if not compared or diverged is None or refused is None or num_canaries is None:
        return inconclusive(name, "a count of the comparison is missing", threshold=threshold)
    if compared + refused != num_canaries:
        return inconclusive(name, f"{compared} of {num_canaries} canaries were compared", threshold=threshold)
    noise = report.count("canary_parity", "noise_floor_diverged")
    ids = _texts(report.value("canary_parity", "diverged"))
    near_ties = report.count("canary_parity", "num_near_tie") or 0
    return Finding(
        name=name,
        outcome="passed" if diverged <= settings.max_diverged else "failed",
        observed=float(diverged),
        threshold=threshold,
        num_examples=compared,
        explanation=f"merged and adapter diverge on {diverged} of {compared} canaries "
        f"({near_ties} near ties; one form from itself: {'unknown' if noise is None else noise})",
        example_ids=ids[:MAX_EXAMPLE_IDS],
    )


def _check_effect(settings: CanaryParityRule, evidence: Evidence) -> Finding:
    name, threshold = "differs from the base", float(settings.min_differ_from_base)
    differ = evidence.candidate.count("canary_parity", "num_differ_from_base")
    if differ is None:
        return inconclusive(name, "it is not known whether the adapter changes anything", threshold=threshold)
    return Finding(
        name=name,
        outcome=hold_against(float(differ), None, at_least(threshold), "point"),
        observed=float(differ),
        threshold=threshold,
        num_examples=evidence.candidate.count("canary_parity", "num_compared"),
        explanation=f"the adapter differs from the base on {differ} canaries",
    )


def _check_size(role: str, minimum: int, evidence: Evidence) -> Finding:
    num = evidence.candidate.count("sets", role, "num_examples")
    rows = len(evidence.candidate.role_rows(role))
    if num is None or num != rows:
        explanation = f"{role}: {num} examples are stated, {rows} rows are there"
        return inconclusive(f"{role} size", explanation, threshold=float(minimum), num_examples=num)
    enough = num >= minimum
    return Finding(
        name=f"{role} size",
        outcome="passed" if enough else "inconclusive",
        explanation=f"{role} has {num} examples" + ("" if enough else f", at least {minimum} are needed"),
        observed=float(num),
        threshold=float(minimum),
        num_examples=num,
    )


def _check_verified(role: str, minimum: float, evidence: Evidence) -> Finding:
    fraction = evidence.candidate.number("sets", role, "verified_fraction")
    name = f"{role} references"
    unverified = tuple(
        str(row.get("example_id"))
        for row in evidence.candidate.role_rows(role)
        if not (isinstance(row.get("details"), Mapping) and row["details"].get("verified") is True)
    )
    if hold_against(fraction, None, at_least(minimum), "point") == "passed":
        return Finding(
            name=name,
            outcome="passed",
            explanation=f"{role}: {as_percent(fraction)} of the references are verified",
            observed=fraction,
            threshold=minimum,
        )
    return inconclusive(
        name,
        f"{role}: {as_percent(fraction)} of the references are verified, {as_percent(minimum)} are needed",
        observed=fraction,
        threshold=minimum,
        example_ids=unverified[:MAX_EXAMPLE_IDS],
    )


def _check_review_dimension(dimension: str, means: Any, num: int) -> Finding:
    candidate = _number(means, "candidate_mean")
    baseline = _number(means, "baseline_mean")
    if candidate is None or baseline is None:
        return inconclusive(dimension, f"{dimension} was not reviewed")
    return Finding(
        name=dimension,
        outcome=hold_against(candidate, None, at_least(baseline), "point"),
        observed=candidate,
        threshold=baseline,
        num_examples=num,
        explanation=f"{dimension}: {candidate:.2f}, the baseline {baseline:.2f} (of 5)",
    )


def _number(means: Any, key: str) -> float | None:
    value = means.get(key) if isinstance(means, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _texts(values: Any) -> tuple[str, ...]:
    return (
        tuple(str(value) for value in values)
        if isinstance(values, Sequence) and not isinstance(values, str)
        else ()
    )
