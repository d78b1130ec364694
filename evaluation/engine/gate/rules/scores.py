"""Rules about scores: ood_ratio, beats_baseline, min_score."""

from evaluation.engine.gate.evidence import Evidence, SetMean, paired_differences, row_score
from evaluation.engine.gate.outcome import (
    MAX_EXAMPLE_IDS,
    Finding,
    above,
    as_percent,
    at_least,
    hold_against,
    inconclusive,
)
from evaluation.engine.gate.policy import BeatsBaselineRule, MinScoreRule, OodRatioRule
from evaluation.engine.statistics import bootstrap_mean, bootstrap_ratio_of_means

_UNKNOWN = "is missing, or its rows do not add up to it"


def check_ood_ratio(settings: OodRatioRule, evidence: Evidence) -> Finding:
    """score(ood) / score(holdout) >= min_ratio."""
    name, threshold = "ood_ratio", settings.min_ratio
    holdout = evidence.candidate.set_mean("holdout", "score", row_score)
    ood = evidence.candidate.set_mean("ood", "score", row_score)
    if holdout is None or ood is None:
        return inconclusive(name, f"the score on holdout or OOD {_UNKNOWN}", threshold=threshold)
    num = holdout.num_examples + ood.num_examples
    if holdout.mean == 0:
        return inconclusive(
            name, "the holdout score is 0, so there is no ratio", threshold=threshold, num_examples=num
        )
    ratio = ood.mean / holdout.mean
    interval = bootstrap_ratio_of_means(ood.list(), holdout.list())
    return Finding(
        name=name,
        outcome=hold_against(ratio, interval, at_least(threshold), settings.confidence),
        observed=ratio,
        interval=interval,
        threshold=threshold,
        num_examples=num,
        explanation=f"OOD scores {as_percent(ood.mean)}, holdout {as_percent(holdout.mean)}: "
        f"{as_percent(ratio)} of it, at least {as_percent(threshold)} wanted",
        example_ids=_failures(ood),
    )


def check_beats_baseline(settings: BeatsBaselineRule, evidence: Evidence) -> Finding:
    """score(holdout) - the baseline's > min_margin, on the same examples."""
    name, threshold = "beats_baseline", settings.min_margin
    if evidence.comparison_fault is not None:
        return inconclusive(name, evidence.comparison_fault, threshold=threshold)
    candidate = evidence.candidate.set_mean("holdout", "score", row_score)
    baseline = evidence.baseline.set_mean("holdout", "score", row_score)
    if candidate is None or baseline is None:
        return inconclusive(name, f"a holdout score {_UNKNOWN}", threshold=threshold)
    differences = paired_differences(candidate, baseline)
    if differences is None:
        return inconclusive(name, "candidate and baseline ran on different examples", threshold=threshold)
    margin = candidate.mean - baseline.mean
    interval = bootstrap_mean(list(differences.values()))
    return Finding(
        name=name,
        outcome=hold_against(margin, interval, above(threshold), settings.confidence),
        observed=margin,
        interval=interval,
        threshold=threshold,
        num_examples=len(differences),
        explanation=f"holdout scores {as_percent(candidate.mean)}, the prompt-only baseline "
        f"{as_percent(baseline.mean)}",
        example_ids=tuple(i for i, difference in differences.items() if difference < 0)[:MAX_EXAMPLE_IDS],
    )


def check_min_score(settings: MinScoreRule, evidence: Evidence) -> Finding:
    """score(holdout) >= the suite's min_score."""
    name = "min_score"
    if evidence.min_score is None or not 0 < evidence.min_score <= 1:
        return inconclusive(name, "the suite states no target between 0 and 1")
    holdout = evidence.candidate.set_mean("holdout", "score", row_score)
    if holdout is None:
        return inconclusive(name, f"the holdout score {_UNKNOWN}", threshold=evidence.min_score)
    interval = bootstrap_mean(holdout.list())
    return Finding(
        name=name,
        outcome=hold_against(holdout.mean, interval, at_least(evidence.min_score), settings.confidence),
        observed=holdout.mean,
        interval=interval,
        threshold=evidence.min_score,
        num_examples=holdout.num_examples,
        explanation=f"holdout scores {as_percent(holdout.mean)}, the suite's owner wants at least "
        f"{as_percent(evidence.min_score)}",
        example_ids=_failures(holdout),
    )


def _failures(scores: SetMean) -> tuple[str, ...]:
    return scores.ids_where(lambda score: score < 1)[:MAX_EXAMPLE_IDS]
