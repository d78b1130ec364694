"""Decides: every rule of the policy is checked against the evidence, and the worst outcome is the verdict.

Any failed rule rejects; else any inconclusive rule makes the verdict inconclusive; else it is passed. The
same policy and evidence give the same decision, intervals included (the bootstrap is seeded).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from evaluation.engine.gate.evidence import Evidence
from evaluation.engine.gate.explain import explain
from evaluation.engine.gate.outcome import Finding, worst
from evaluation.engine.gate.policy import RULE_SETTINGS, Policy
from evaluation.engine.gate.rules.outputs import check_behaviour, check_json_parse_rate
from evaluation.engine.gate.rules.regression import check_regression_drop
from evaluation.engine.gate.rules.scores import check_beats_baseline, check_min_score, check_ood_ratio
from evaluation.engine.gate.rules.trust import (
    check_blind_review,
    check_canary_parity,
    check_evidence,
    check_leakage,
)

Verdict = Literal["passed", "rejected", "inconclusive"]

CHECKS: Final[Mapping[str, Callable[[Any, Evidence], Finding]]] = {
    "ood_ratio": check_ood_ratio,
    "regression_drop": check_regression_drop,
    "json_parse_rate": check_json_parse_rate,
    "beats_baseline": check_beats_baseline,
    "min_score": check_min_score,
    "canary_parity": check_canary_parity,
    "behaviour": check_behaviour,
    "leakage": check_leakage,
    "evidence": check_evidence,
    "blind_review": check_blind_review,
}
"""The function behind each rule; each takes its own settings and the evidence."""

_VERDICTS: Final[Mapping[str, Verdict]] = {
    "passed": "passed",
    "failed": "rejected",
    "inconclusive": "inconclusive",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with all that led to it.

    Attributes:
        verdict: passed, rejected or inconclusive.
        rules: One finding for each known rule, in a fixed order; those that the policy leaves out are
            skipped.
        summary: The verdict in plain words, with what to do.
    """

    verdict: Verdict
    rules: tuple[Finding, ...]
    summary: str

    def to_json(self) -> dict[str, Any]:
        """Return the decision as it is stored and shown."""
        return {
            "verdict": self.verdict,
            "rules": [finding.to_json("rule") for finding in self.rules],
            "summary": self.summary,
        }


def decide(policy: Policy, evidence: Evidence) -> Decision:
    """Apply a policy to the evidence."""
    findings = tuple(_check(name, policy, evidence) for name in RULE_SETTINGS)
    verdict = _VERDICTS[worst([finding.outcome for finding in findings])]
    return Decision(verdict, findings, explain(verdict, findings))


def _check(name: str, policy: Policy, evidence: Evidence) -> Finding:
    if name not in policy.rules:
        return Finding(
            name=name, outcome="skipped", explanation=f"{policy.name}@{policy.version} has no such rule"
        )
    return CHECKS[name](policy.rules[name], evidence)
