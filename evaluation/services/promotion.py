"""Promotes what the rules passed (or two people set the rules aside for) to a channel."""

from collections.abc import Mapping
from typing import Any

from evaluation.choices import Verdict
from evaluation.errors import EvaluationConflict
from evaluation.models import Decision
from evaluation.selectors.decisions import find_current_decision, find_override
from evaluation.services.overrides import require_reason
from registry.choices import TokenScope
from registry.errors import ConflictError, Fault
from registry.models import Channel
from registry.selectors.adapters import get_version
from registry.selectors.channels import get_channel
from registry.services.actors import Actor
from registry.services.channels import promote_version


def promote(
    *,
    channel_name: str,
    adapter_name: str,
    version_number: int,
    expected_revision: int,
    reason: str,
    override: bool,
    actor: Actor,
) -> Channel:
    """Lets a channel serve an adapter version, in the form that was judged.

    Args:
        channel_name: The channel.
        adapter_name: The adapter.
        version_number: Its version.
        expected_revision: The channel's revision that the client saw.
        reason: Why; goes into the history.
        override: Use the confirmed override when the decision is not `passed`.
        actor: Needs the scope `promote` for this adapter.

    Raises:
        ScopeError: the actor may not.
        NotFoundError: there is no such channel or version.
        ValidationFailed: the reason is missing.
        ConflictError: not decided in the channel's form (`version-undecided`), not passed
            (`version-not-passed`, with the rules that stand against it), or the override is missing or
            unconfirmed.
        PreconditionFailed: the channel was changed meanwhile.
    """
    actor.require(TokenScope.PROMOTE, adapter_name)
    text = require_reason(reason)
    channel = get_channel(channel_name)
    version = get_version(adapter_name=adapter_name, number=version_number)
    decision = find_current_decision(version, channel.form)
    if decision is None:
        raise EvaluationConflict(
            "version-undecided", reference=str(version), form=channel.form, channel=channel.name
        )
    override_reason = "" if decision.verdict == Verdict.PASSED else _override_reason(decision, override)
    return promote_version(
        channel_name=channel_name,
        version=version,
        decision_id=decision.pk,
        verdict=decision.verdict,
        expected_revision=expected_revision,
        reason=text,
        actor=actor,
        override_reason=override_reason,
    )


def _override_reason(decision: Decision, is_wanted: bool) -> str:
    reference = str(decision.run.version)
    if not is_wanted:
        raise ConflictError(
            "version-not-passed",
            faults=[
                _rule_fault(rule) for rule in decision.rules if rule["outcome"] in ("failed", "inconclusive")
            ],
            reference=reference,
            verdict=decision.verdict,
        )
    override = find_override(decision)
    if override is None:
        raise EvaluationConflict("override-missing", reference=reference, decision=str(decision.pk))
    if override.confirmed_at is None:
        raise EvaluationConflict(
            "override-unconfirmed",
            reference=reference,
            asked_by=str(override.created_by),
            override=override.pk,
        )
    return f"{override.reason} (asked for by {override.created_by}, confirmed by {override.confirmed_by})"


def _rule_fault(rule: Mapping[str, Any]) -> Fault:
    return Fault(code=f"rule-{rule['outcome']}", message=rule.get("explanation", ""), where=rule["rule"])
