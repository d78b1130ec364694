"""Running the rules on a plan."""

from collections.abc import Iterator, Sequence

from registry.artifacts.findings import Severity
from training.engine.lint.catalogue import RULES
from training.engine.lint.findings import LintFinding, LintReport, LintRule, UncheckedRule
from training.engine.lint.plan import TrainingPlan

_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def judge_plan(plan: TrainingPlan, *, rules: Sequence[LintRule] = RULES) -> LintReport:
    """Return what the rules find in a planned training, and which of them lacked facts.

    The same plan gives the same report in any process.
    """
    known = plan.known
    unchecked = tuple(
        UncheckedRule(code=rule.code, missing=tuple(sorted(rule.needs - known)))
        for rule in rules
        if not rule.needs <= known
    )
    findings = _run(plan, [rule for rule in rules if rule.needs <= known])
    return LintReport(
        findings=tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity))),
        unchecked=unchecked,
    )


def _run(plan: TrainingPlan, rules: Sequence[LintRule]) -> Iterator[LintFinding]:
    for rule in rules:
        seen = rule.check(plan)
        if seen is not None:
            yield LintFinding(
                code=rule.code,
                severity=seen.severity,
                message=seen.message,
                where=rule.where,
                remedy=seen.remedy,
                source=f"MISSION {rule.source}",
            )
