"""The rule about general ability: regression_drop."""

from evaluation.engine.gate.evidence import (
    Evidence,
    Report,
    SetMean,
    checked_mean,
    paired_differences,
    row_score,
)
from evaluation.engine.gate.outcome import (
    MAX_EXAMPLE_IDS,
    Finding,
    as_percent,
    at_most,
    combine,
    hold_against,
    inconclusive,
)
from evaluation.engine.gate.policy import RegressionDropRule
from evaluation.engine.statistics import bootstrap_mean, mcnemar_exact

_NAME = "regression_drop"


def check_regression_drop(settings: RegressionDropRule, evidence: Evidence) -> Finding:
    """For every dimension baseline - candidate <= max_drop, in points and on the same examples."""
    if evidence.comparison_fault is not None:
        return inconclusive(_NAME, evidence.comparison_fault, threshold=settings.max_drop)
    dimensions = sorted(_dimensions(evidence.candidate) | _dimensions(evidence.baseline))
    if not dimensions:
        return inconclusive(_NAME, "no regression dimension was measured", threshold=settings.max_drop)
    parts = [_check_dimension(name, settings, evidence) for name in dimensions]
    known = [part for part in parts if part.observed is not None]
    largest = max(known, key=lambda part: part.observed or 0.0, default=None)
    if largest is None or largest.observed is None:
        return combine(_NAME, parts, "no dimension can be compared", threshold=settings.max_drop)
    counted = evidence.candidate.count("sets", "regression", "num_examples")
    covered = sum(part.num_examples or 0 for part in known)
    if len(known) == len(parts) and counted != covered:
        parts.append(inconclusive("all examples", f"the dimensions cover {covered} of {counted} examples"))
    return combine(
        _NAME,
        parts,
        f"the largest change is in {largest.name}: {_describe_drop(largest.observed)}, "
        f"a drop of at most {as_percent(settings.max_drop)} is allowed",
        observed=largest.observed,
        interval=largest.interval,
        threshold=settings.max_drop,
        num_examples=covered,
    )


def _check_dimension(dimension: str, settings: RegressionDropRule, evidence: Evidence) -> Finding:
    candidate, baseline = _scores(evidence.candidate, dimension), _scores(evidence.baseline, dimension)
    if candidate is None or baseline is None:
        side = "candidate" if candidate is None else "baseline"
        return inconclusive(
            dimension,
            f"the {side}'s score in {dimension} is missing, or its rows do not add up to it",
            threshold=settings.max_drop,
        )
    drops = paired_differences(baseline, candidate)
    if drops is None:
        return inconclusive(
            dimension, "candidate and baseline ran on different examples", threshold=settings.max_drop
        )
    drop = baseline.mean - candidate.mean
    interval = bootstrap_mean(list(drops.values()))
    lost = tuple(example_id for example_id, value in drops.items() if value > 0)
    num_gained = sum(value < 0 for value in drops.values())
    return Finding(
        name=dimension,
        outcome=hold_against(drop, interval, at_most(settings.max_drop), settings.confidence),
        observed=drop,
        interval=interval,
        threshold=settings.max_drop,
        num_examples=len(drops),
        explanation=f"{as_percent(baseline.mean)} before, {as_percent(candidate.mean)} after; "
        f"{len(lost)} examples lost, {num_gained} gained",
        example_ids=lost[:MAX_EXAMPLE_IDS],
        p_value=mcnemar_exact(len(lost), num_gained),
    )


def _scores(report: Report, dimension: str) -> SetMean | None:
    path = ("sets", "regression", "dimensions", dimension)
    rows = [row for row in report.role_rows("regression") if row.get("dimension") == dimension]
    return checked_mean(report.number(*path, "score"), report.count(*path, "num_examples"), rows, row_score)


def _dimensions(report: Report) -> set[str]:
    stated = report.value("sets", "regression", "dimensions")
    names = set(stated) if isinstance(stated, dict) else set()
    # A dimension that the metrics lost but the rows still show must not go unnoticed.
    return names | {str(row.get("dimension")) for row in report.role_rows("regression")}


def _describe_drop(drop: float) -> str:
    return f"down {as_percent(drop)}" if drop >= 0 else f"up {as_percent(-drop)}"
