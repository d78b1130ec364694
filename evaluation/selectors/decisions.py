"""Reads decisions and overrides."""

import uuid

from django.db.models import QuerySet

from evaluation.errors import EvaluationNotFound
from evaluation.models import Decision, Override
from registry.models import AdapterVersion


def get_decision(decision_id: uuid.UUID) -> Decision:
    """One decision with its run.

    Raises:
        EvaluationNotFound: there is none of this id.
    """
    decisions = Decision.objects.select_related(
        "policy", "run__version__adapter", "run__suite_version__suite", "run__baseline"
    )
    decision = decisions.filter(pk=decision_id).first()
    if decision is None:
        raise EvaluationNotFound("decision-not-found", decision_id=str(decision_id))
    return decision


def find_current_decision(version: AdapterVersion, form: str) -> Decision | None:
    """The decision that counts for a promotion: of the newest decided run of the version in this form.

    None when the version was never judged in this form.
    """
    return (
        Decision.objects.filter(run__version=version, run__form=form)
        .select_related("policy", "run__version__adapter")
        .order_by("-run__created_at", "-created_at")
        .first()
    )


def list_overrides() -> QuerySet[Override]:
    """All overrides, newest first."""
    return Override.objects.select_related(
        "decision__run__version__adapter", "created_by", "confirmed_by"
    ).order_by("-created_at", "-id")


def get_override(override_id: int) -> Override:
    """One override.

    Raises:
        EvaluationNotFound: there is none of this id.
    """
    override = list_overrides().filter(pk=override_id).first()
    if override is None:
        raise EvaluationNotFound("override-not-found", override_id=override_id)
    return override


def find_override(decision: Decision) -> Override | None:
    """The override of a decision that counts: a confirmed one before an open one, the newest of them; or
    None.
    """
    overrides = list_overrides().filter(decision=decision)
    return overrides.filter(confirmed_at__isnull=False).first() or overrides.first()
