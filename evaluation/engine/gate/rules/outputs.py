"""Rules about the outputs themselves: json_parse_rate, behaviour."""

from collections.abc import Callable
from dataclasses import dataclass

from evaluation.engine.gate.evidence import (
    Evidence,
    Report,
    Row,
    SetMean,
    checked_mean,
    paired_differences,
    row_behaviour,
    row_is_schema_valid,
    row_is_strict,
)
from evaluation.engine.gate.outcome import (
    MAX_EXAMPLE_IDS,
    Finding,
    Threshold,
    as_percent,
    at_least,
    at_most,
    combine,
    hold_against,
    inconclusive,
)
from evaluation.engine.gate.policy import BehaviourRule, Confidence, JsonParseRateRule
from evaluation.engine.statistics import bootstrap_mean, wilson_interval

_TASK_ROLES = ("holdout", "ood")


@dataclass(frozen=True, slots=True)
class _Rate:
    """A rate of a report: where it is stated and how a row shows it.

    Attributes:
        words: How it is called in findings.
        metric: Its name in the metrics.
        of_row: Gives a row's value, 0 or 1.
        bad_value: The value of the rows that speak against the candidate.
    """

    words: str
    metric: str
    of_row: Callable[[Row], float | None]
    bad_value: float


_STRICT = _Rate("strict JSON", "strict_parse_rate", row_is_strict, 0)
_VALID = _Rate("schema-valid", "schema_valid_rate", row_is_schema_valid, 0)
_NEVER_STOPS = _Rate("never stops", "never_stops_rate", row_behaviour("never_stopped"), 1)
_RESIDUE = _Rate("template residue", "template_residue_rate", row_behaviour("template_residue"), 1)


def check_json_parse_rate(settings: JsonParseRateRule, evidence: Evidence) -> Finding:
    """Strict parse rate and schema validity on holdout and OOD, absolute and against the baseline."""
    parts: list[Finding] = []
    for role in _TASK_ROLES:
        for rate, minimum in (
            (_STRICT, settings.min_strict_parse_rate),
            (_VALID, settings.min_schema_valid_rate),
        ):
            parts.append(_check_rate(role, rate, at_least(minimum), settings.confidence, evidence.candidate))
            parts.append(_check_not_below_baseline(role, rate, settings.confidence, evidence))
    strict = [part for part in parts if part.name.endswith(_STRICT.words) and part.observed is not None]
    lowest = min(strict, key=lambda part: part.observed or 0.0, default=None)
    return combine(
        "json_parse_rate",
        parts,
        "; ".join(
            f"{part.name}: {as_percent(part.observed)}" for part in parts if "baseline" not in part.name
        ),
        observed=None if lowest is None else lowest.observed,
        interval=None if lowest is None else lowest.interval,
        threshold=settings.min_strict_parse_rate,
        num_examples=None if lowest is None else lowest.num_examples,
    )


def check_behaviour(settings: BehaviourRule, evidence: Evidence) -> Finding:
    """Never-stops and template-residue rates on holdout and OOD, and their rise on open regression
    prompts.
    """
    limits = ((_NEVER_STOPS, settings.max_never_stops_rate), (_RESIDUE, settings.max_template_residue_rate))
    parts = [
        _check_behaviour_rate(role, rate, limit, settings.confidence, evidence.candidate)
        for role in _TASK_ROLES
        for rate, limit in limits
    ]
    known = [part.observed for part in parts if part.observed is not None]
    parts.extend(_check_open_regression(rate, settings, evidence) for rate, _ in limits)
    return combine(
        "behaviour",
        parts,
        "; ".join(f"{part.name}: {as_percent(part.observed)}" for part in parts if part.outcome != "skipped"),
        observed=max(known, default=None),
        threshold=settings.max_never_stops_rate,
    )


def _check_rate(
    role: str, rate: _Rate, threshold: Threshold, confidence: Confidence, report: Report
) -> Finding:
    name = f"{role} {rate.words}"
    return _rate_finding(name, rate, report.set_mean(role, rate.metric, rate.of_row), threshold, confidence)


def _check_behaviour_rate(
    role: str, rate: _Rate, limit: float, confidence: Confidence, report: Report
) -> Finding:
    measured = _behaviour_mean(
        report, role, rate, report.role_rows(role), report.count("sets", role, "num_examples")
    )
    return _rate_finding(f"{role} {rate.words}", rate, measured, at_most(limit), confidence)


def _rate_finding(
    name: str, rate: _Rate, measured: SetMean | None, threshold: Threshold, confidence: Confidence
) -> Finding:
    if measured is None:
        return inconclusive(
            name, "the rate is missing, or its rows do not add up to it", threshold=threshold.value
        )
    ones = sum(value == 1 for value in measured.values.values())
    interval = wilson_interval(ones, measured.num_examples)
    wanted = "at least" if threshold.is_minimum else "at most"
    return Finding(
        name=name,
        outcome=hold_against(measured.mean, interval, threshold, confidence),
        observed=measured.mean,
        interval=interval,
        threshold=threshold.value,
        num_examples=measured.num_examples,
        explanation=f"{ones} of {measured.num_examples}: {as_percent(measured.mean)}, "
        f"{wanted} {as_percent(threshold.value)} wanted",
        example_ids=measured.ids_where(lambda value: value == rate.bad_value)[:MAX_EXAMPLE_IDS],
    )


def _check_not_below_baseline(role: str, rate: _Rate, confidence: Confidence, evidence: Evidence) -> Finding:
    name = f"{role} {rate.words} against the baseline"
    if evidence.comparison_fault is not None:
        return inconclusive(name, evidence.comparison_fault, threshold=0.0)
    candidate = evidence.candidate.set_mean(role, rate.metric, rate.of_row)
    baseline = evidence.baseline.set_mean(role, rate.metric, rate.of_row)
    return _difference_finding(name, candidate, baseline, at_least(0.0), confidence)


def _check_open_regression(rate: _Rate, settings: BehaviourRule, evidence: Evidence) -> Finding:
    name = f"open regression {rate.words} against the baseline"
    limit = settings.max_open_regression_increase
    if evidence.comparison_fault is not None:
        return inconclusive(name, evidence.comparison_fault, threshold=limit)
    path = ("sets", "regression", "num_open_generation")
    counts = (evidence.candidate.count(*path), evidence.baseline.count(*path))
    if counts == (0, 0) and not _open_rows(evidence.candidate) and not _open_rows(evidence.baseline):
        return Finding(name=name, outcome="skipped", explanation="the suite has no open regression prompts")
    candidate = _behaviour_mean(
        evidence.candidate, "regression", rate, _open_rows(evidence.candidate), counts[0]
    )
    baseline = _behaviour_mean(
        evidence.baseline, "regression", rate, _open_rows(evidence.baseline), counts[1]
    )
    return _difference_finding(name, candidate, baseline, at_most(limit), settings.confidence)


def _difference_finding(
    name: str,
    candidate: SetMean | None,
    baseline: SetMean | None,
    threshold: Threshold,
    confidence: Confidence,
) -> Finding:
    if candidate is None or baseline is None:
        return inconclusive(
            name, "a rate is missing, or its rows do not add up to it", threshold=threshold.value
        )
    differences = paired_differences(candidate, baseline)
    if differences is None:
        return inconclusive(
            name, "candidate and baseline ran on different examples", threshold=threshold.value
        )
    change = candidate.mean - baseline.mean
    interval = bootstrap_mean(list(differences.values()))
    worse = -1 if threshold.is_minimum else 1
    return Finding(
        name=name,
        outcome=hold_against(change, interval, threshold, confidence),
        observed=change,
        interval=interval,
        threshold=threshold.value,
        num_examples=len(differences),
        explanation=f"{as_percent(candidate.mean)}, the baseline {as_percent(baseline.mean)}",
        example_ids=tuple(i for i, value in differences.items() if value == worse)[:MAX_EXAMPLE_IDS],
    )


def _behaviour_mean(
    report: Report, role: str, rate: _Rate, rows: list[Row], num: int | None
) -> SetMean | None:
    return checked_mean(report.number("sets", role, "behaviour", rate.metric), num, rows, rate.of_row)


def _open_rows(report: Report) -> list[Row]:
    return [row for row in report.role_rows("regression") if row.get("finish_reason") != "scored"]
