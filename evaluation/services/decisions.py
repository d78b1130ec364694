"""Decides runs by their policy, and decides again from what is stored to show that the decision still
holds.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluation.choices import RunState
from evaluation.engine.canonical import canonical_digest
from evaluation.engine.errors import PolicyError
from evaluation.engine.gate import decision as gate
from evaluation.engine.gate.evidence import Evidence, Report
from evaluation.engine.gate.policy import load_policy
from evaluation.engine.json_text import json_equal
from evaluation.errors import EvaluationConflict, EvaluationNotFound, GateError
from evaluation.models import Decision, EvaluationRun, Policy
from evaluation.selectors.runs import list_examples
from evaluation.services.run_states import follow_run, lock_run, move_run
from registry.choices import TokenScope
from registry.services.actors import Actor
from registry.services.audit import record_audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """A decision made again.

    Attributes:
        decision: Id of the stored decision.
        is_equal: Whether evidence, verdict, rules and summary are the same.
        verdict: The verdict now.
        differences: What is not the same, in words; empty when equal.
    """

    decision: uuid.UUID
    is_equal: bool
    verdict: str
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    document: Mapping[str, Any]
    evidence_digest: str


def decide_run(*, run_id: uuid.UUID, actor: Actor) -> Decision:
    """Decides a scored candidate run; the run becomes `decided`, its version takes the verdict.

    Raises:
        EvaluationNotFound: there is no such run.
        EvaluationConflict: the run is not scored, or is a baseline.
        GateError: the policy cannot be applied.
        IllegalTransition: another process decided it first.
    """
    related = ("policy", "suite_version", "baseline")
    run = EvaluationRun.objects.select_related(*related).filter(pk=run_id).first()
    if run is None:
        raise EvaluationNotFound("run-not-found", run_id=str(run_id))
    if run.state != RunState.SCORED or run.policy is None:
        raise EvaluationConflict("run-not-scored", state=run.state)
    # The bootstrap takes a while; no lock is held for it. The evidence cannot change once a run is scored.
    outcome = _apply(run, run.policy)
    verdict = str(outcome.document["verdict"])
    with transaction.atomic():
        locked = lock_run(run)
        move_run(run=locked, to_state=RunState.DECIDED, actor=actor, finished_at=timezone.now())
        decision = Decision.objects.create(
            run=locked,
            policy=run.policy,
            verdict=verdict,
            rules=outcome.document["rules"],
            summary=outcome.document["summary"],
            evidence_digest=outcome.evidence_digest,
        )
        follow_run(run=locked, to_state=verdict, actor=actor)
        record_audit(
            actor=actor,
            action="decision.create",
            target=decision,
            after={"verdict": verdict, "evidence_digest": outcome.evidence_digest},
            reason=decision.summary,
        )
    return decision


def recompute_decision(*, decision: Decision, actor: Actor) -> Recomputation:
    """Applies the decision's policy again to the stored rows and metrics, and compares; writes nothing.

    Raises:
        ScopeError: the actor may not read.
        EvaluationConflict: the policy cannot be applied any more (code `policy-not-applicable`).
    """
    actor.require(TokenScope.READ)
    try:
        outcome = _apply(decision.run, decision.policy)
    except GateError as error:
        raise EvaluationConflict("policy-not-applicable", str(error)) from error
    differences = tuple(_differences(decision, outcome))
    return Recomputation(
        decision=decision.pk,
        is_equal=not differences,
        verdict=str(outcome.document["verdict"]),
        differences=differences,
    )


def _apply(run: EvaluationRun, policy: Policy) -> _Outcome:
    try:
        rules = load_policy(policy.definition)
    except PolicyError as error:
        raise GateError(f"policy {policy} cannot be read: {error}") from error
    evidence = Evidence(
        candidate=_report_of(run),
        baseline=Report() if run.baseline is None else _report_of(run.baseline),
        min_score=run.suite_version.definition.get("min_score"),
    )
    document = gate.decide(rules, evidence).to_json()
    return _Outcome(document=document, evidence_digest=_digest_of(evidence, policy))


def _report_of(run: EvaluationRun) -> Report:
    rows = list_examples(run).values_list("details", flat=True)
    return Report(metrics=run.metrics, rows=tuple(rows))


def _digest_of(evidence: Evidence, policy: Policy) -> str:
    reports = {"candidate": evidence.candidate, "baseline": evidence.baseline}
    return canonical_digest(
        {
            "policy": policy.definition,
            "min_score": evidence.min_score,
            **{name: {"metrics": it.metrics, "rows": list(it.rows)} for name, it in reports.items()},
        }
    )


def _differences(decision: Decision, outcome: _Outcome) -> list[str]:
    differences = []
    if decision.evidence_digest != outcome.evidence_digest:
        differences.append("the stored rows, metrics or policy are not those that were judged")
    if decision.verdict != outcome.document["verdict"]:
        differences.append(f"the verdict was {decision.verdict} and is now {outcome.document['verdict']}")
    stored = {rule.get("rule"): rule for rule in decision.rules}
    current = {rule["rule"]: rule for rule in outcome.document["rules"]}
    for name in sorted(stored.keys() | current.keys(), key=str):
        if not json_equal(stored.get(name), current.get(name)):
            differences.append(f"rule {name} came out differently")
    if decision.summary != outcome.document["summary"]:
        differences.append("the summary reads differently")
    return differences
