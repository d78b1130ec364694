"""Registers policies. A policy version never changes; the same rules again are the same version."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import IntegrityError, transaction

from evaluation.engine.errors import PolicyError
from evaluation.engine.gate.policy import DEFAULT_POLICY, load_policy
from evaluation.engine.gate.policy import Policy as PolicyRules
from evaluation.engine.json_text import find_unstorable_text
from evaluation.errors import EvaluationConflict, RegistrationInvalid, registry_faults
from evaluation.models import Policy
from registry.choices import TokenScope
from registry.errors import Fault
from registry.services.actors import SYSTEM, Actor
from registry.services.audit import record_audit

FIRST_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredPolicy:
    """A policy version, and whether it was made just now."""

    policy: Policy
    is_new: bool


def register_policy(*, definition: Any, actor: Actor) -> RegisteredPolicy:
    """Makes a policy version out of its document; thresholds that are left out take the defaults of this day.

    Args:
        definition: As `evaluation.engine.gate.policy.load_policy` reads it. A `version` that is left out
            becomes the next number, unless the newest version has the same rules.
        actor: Needs the scope `admin`, because a policy decides what may ship.

    Raises:
        ScopeError: the actor may not.
        RegistrationInvalid: the document is at fault (code `policy-invalid`), every fault at once.
        EvaluationConflict: the version exists with other rules (code `policy-version-taken`).
    """
    actor.require(TokenScope.ADMIN)
    rules = _read_rules(definition)
    try:
        with transaction.atomic():
            return _find_or_create(rules, actor)
    except IntegrityError:
        # Another request made the same version between our look and our insert.
        with transaction.atomic():
            return _find_or_create(rules, actor)


def ensure_default_policy() -> Policy:
    """The newest version of the default policy; made, or followed by a next version, when the code's rules
    are new.
    """
    newest = _newest(DEFAULT_POLICY.name)
    if newest is not None and _same_rules(newest, DEFAULT_POLICY):
        return newest
    number = FIRST_VERSION if newest is None else newest.number + 1
    document = replace(DEFAULT_POLICY, version=number).to_json()
    return register_policy(definition=document, actor=SYSTEM).policy


def _read_rules(definition: Any) -> PolicyRules:
    if (reason := find_unstorable_text(definition)) is not None:
        fault = Fault(code="unstorable-text", message=f"A text in the policy {reason}.", where="policy")
        raise RegistrationInvalid("policy-invalid", faults=[fault])
    if isinstance(definition, Mapping) and "version" not in definition:
        definition = {**definition, "version": _implied_version(definition)}
    try:
        return load_policy(definition)
    except PolicyError as error:
        raise RegistrationInvalid("policy-invalid", faults=registry_faults(error.faults)) from error


def _implied_version(definition: Mapping[str, Any]) -> int:
    newest = _newest(str(definition.get("name", "")))
    if newest is None:
        return FIRST_VERSION
    try:
        rules = load_policy({**definition, "version": newest.number})
    except PolicyError:
        # The faults are told when the whole document is read.
        return newest.number + 1
    return newest.number if _same_rules(newest, rules) else newest.number + 1


def _find_or_create(rules: PolicyRules, actor: Actor) -> RegisteredPolicy:
    existing = Policy.objects.filter(name=rules.name, number=rules.version).first()
    if existing is not None:
        if existing.digest != rules.digest:
            raise EvaluationConflict("policy-version-taken", reference=str(existing))
        return RegisteredPolicy(policy=existing, is_new=False)
    newest = _newest(rules.name)
    next_number = FIRST_VERSION if newest is None else newest.number + 1
    if rules.version != next_number:
        message = f"The next version of policy {rules.name} is {next_number}, not {rules.version}."
        fault = Fault(code="policy-version-skips", message=message, where="policy: version")
        raise RegistrationInvalid("policy-invalid", faults=[fault])
    policy = Policy.objects.create(
        name=rules.name,
        number=rules.version,
        definition=rules.to_json(),
        digest=rules.digest,
        created_by=actor.user,
    )
    record_audit(actor=actor, action="policy.register", target=policy, after={"digest": rules.digest})
    return RegisteredPolicy(policy=policy, is_new=True)


def _newest(name: str) -> Policy | None:
    return Policy.objects.filter(name=name).order_by("-number").first()


def _same_rules(policy: Policy, rules: PolicyRules) -> bool:
    return policy.digest == replace(rules, version=policy.number).digest
