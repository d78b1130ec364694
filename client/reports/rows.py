"""A submission's report as rows of plain cells, shared by the text and Markdown forms.

Cells hold text as the server gave it; each form escapes it in its own way.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from client.errors import ErrorDetail
from client.models import RuleResult, Submission

MISSING = "-"
RULE_HEADINGS = ("rule", "outcome", "observed", "95 % interval", "threshold", "n")
SET_HEADINGS = ("set", "n", "score", "baseline", "strict JSON", "schema valid")
# The order in which DESIGN section 3 names the roles; what a newer server adds follows.
_SET_ORDER = ("holdout", "ood", "regression", "canary")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """One line of the rule table. ``depth``: 0 for a rule, 1 for a part of it."""

    name: str
    outcome: str
    observed: str
    interval: str
    threshold: str
    num_examples: str
    depth: int

    def cells(self) -> tuple[str, ...]:
        """Return the cells below ``RULE_HEADINGS``."""
        return (self.name, self.outcome, self.observed, self.interval, self.threshold, self.num_examples)


def format_number(value: float | None) -> str:
    """Return a figure with three decimals (counts above one without); "-" for a missing one."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return f"{value:.0f}" if value == int(value) and abs(value) > 1 else f"{value:.3f}"


def format_interval(interval: tuple[float, float] | None) -> str:
    """Return an interval as "low … high"; "-" for a missing one."""
    return MISSING if interval is None else f"{format_number(interval[0])} … {format_number(interval[1])}"


def list_rule_rows(submission: Submission) -> list[RuleRow]:
    """Return the rules of the decision with their parts below them; none before there is a decision."""
    rules = submission.decision.rules if submission.decision else ()
    rows = []
    for rule in rules:
        rows.append(_rule_row(rule, 0))
        rows.extend(_rule_row(part, 1) for part in rule.parts)
    return rows


def _rule_row(rule: RuleResult, depth: int) -> RuleRow:
    return RuleRow(
        name=rule.name,
        outcome=rule.outcome,
        observed=format_number(rule.observed),
        interval=format_interval(rule.interval),
        threshold=format_number(rule.threshold),
        num_examples=MISSING if rule.num_examples is None else str(rule.num_examples),
        depth=depth,
    )


def list_set_rows(submission: Submission) -> list[tuple[str, ...]]:
    """Return per set and dimension the cells below ``SET_HEADINGS``; none before the evaluation."""
    candidate = _sets_of(submission.metrics)
    baseline = _sets_of(submission.baseline_metrics)
    names = [name for name in _SET_ORDER if name in candidate]
    names += sorted(name for name in candidate if name not in _SET_ORDER)
    rows: list[tuple[str, ...]] = []
    for name in names:
        figures = candidate[name]
        dimensions = _mapping(figures.get("dimensions"))
        if dimensions:
            before = _mapping(baseline.get(name, {}).get("dimensions"))
            rows.extend(
                _set_row(f"{name} / {dimension}", _mapping(value), _mapping(before.get(dimension)))
                for dimension, value in sorted(dimensions.items())
            )
        else:
            rows.append(_set_row(name, figures, baseline.get(name, {})))
    return [row for row in rows if any(cell != MISSING for cell in row[1:])]


def _sets_of(metrics: Mapping[str, object] | None) -> dict[str, Mapping[str, object]]:
    if metrics is None:
        return {}
    sets = _mapping(metrics.get("sets")) or metrics
    return {name: _mapping(value) for name, value in sets.items() if isinstance(value, Mapping)}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _set_row(name: str, figures: Mapping[str, object], baseline: Mapping[str, object]) -> tuple[str, ...]:
    num_examples = figures.get("num_examples")
    return (
        name,
        str(num_examples) if isinstance(num_examples, int) else MISSING,
        _figure(figures, "score"),
        _figure(baseline, "score"),
        _figure(figures, "strict_parse_rate"),
        _figure(figures, "schema_valid_rate"),
    )


def _figure(figures: Mapping[str, object], key: str) -> str:
    value = figures.get(key)
    return format_number(float(value)) if isinstance(value, int | float) else MISSING


def headline(submission: Submission) -> str:
    """Return the sentence that says how it ended, or where it is."""
    subject = f"{submission.reference} on {submission.suite}"
    policy = f" by {submission.policy}" if submission.policy else ""
    match submission.state:
        case "passed":
            return f"{subject} passed{policy}."
        case "rejected":
            return f"{subject} was rejected{policy}: {_named(submission, 'failed')}."
        case "inconclusive":
            return f"{subject} is inconclusive{policy}: {_named(submission, 'inconclusive')}."
        case "invalid":
            num_faults = sum(1 for finding in submission.findings if finding.severity == "error")
            noun = "fault" if num_faults == 1 else "faults"
            return f"{submission.reference} is invalid: {num_faults} {noun}. Nothing was evaluated."
        case "failed":
            return (
                f"{submission.reference} could not be judged: the server failed, the adapter is not to blame."
            )
        case "cancelled":
            return f"{submission.reference} was cancelled before a verdict."
        case state:
            return f"{subject} is {state}; there is no verdict yet."


def _named(submission: Submission, outcome: str) -> str:
    rules = submission.decision.rules if submission.decision else ()
    names = [rule.name for rule in rules if rule.outcome == outcome]
    return ", ".join(names) if names else "see the rules"


def summary_of(submission: Submission) -> str:
    """Return the decision's own summary; empty before there is one."""
    return submission.decision.summary if submission.decision else ""


def deciding_rules(submission: Submission) -> list[RuleResult]:
    """Return the rules that failed or stayed inconclusive."""
    rules = submission.decision.rules if submission.decision else ()
    return [rule for rule in rules if rule.outcome in {"failed", "inconclusive"}]


def iterate_faults(submission: Submission) -> Iterator[ErrorDetail]:
    """Yield the intake's findings and what is known of a failure, the gravest first, each once.

    The failure of an invalid submission repeats the findings that made it invalid.
    """
    order = {"error": 0, "warning": 1}
    findings = sorted(submission.findings, key=lambda finding: order.get(finding.severity, 2))
    yield from findings
    if submission.failure is not None:
        told = {(finding.code, finding.where, finding.message) for finding in findings}
        yield ErrorDetail(code=submission.failure.code, message=submission.failure.message)
        for detail in submission.failure.details:
            if (detail.code, detail.where, detail.message) not in told:
                yield detail


def describe_examples(rule: RuleResult, *, limit: int = 5) -> str:
    """Return the names of the first examples that decide a rule; empty when there are none."""
    if not rule.example_ids:
        return ""
    shown = ", ".join(rule.example_ids[:limit])
    rest = len(rule.example_ids) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown
